"""pyoxigraph: an RDF store, read as sorted N-Quads and by a query."""

import driver
import pyoxigraph as ox


class App(driver.Application):
    def open(self, dir, create):
        return ox.Store(dir)

    def write(self, db, round_number, count):
        quads = []
        for key, value in driver.edits(round_number, "quads", count):
            subject = ox.NamedNode("http://example.org/" + key.decode())
            if value is None:
                for quad in list(db.quads_for_pattern(subject, None, None, None)):
                    db.remove(quad)
            else:
                graph = ox.NamedNode(f"http://example.org/graph{len(value) % 5}")
                predicate = ox.NamedNode(f"http://example.org/p{len(value) % 7}")
                quads.append(ox.Quad(subject, predicate, ox.Literal(value.hex()), graph))
        db.extend(quads)

    def read(self, db):
        texts = sorted(str(quad).encode() for quad in db.quads_for_pattern(None, None, None, None))
        query = "SELECT ?g (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g"
        rows = sorted(f"{row[0]} {row[1]}".encode() for row in db.query(query))
        return {
            "quads": driver.digest((text, b"") for text in texts),
            "graphs": driver.digest((row, b"") for row in rows),
        }

    def flush(self, db):
        db.flush()

    def close(self, db):
        pass  # the store closes with its last reference


driver.serve(App())
