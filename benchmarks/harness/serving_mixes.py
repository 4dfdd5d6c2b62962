"""Every mix before, during and after a refresh, and beside a spinner."""

from harness.served import (KINDS, blocked_window, cores_of_others, moving,
                            phase, pipeline_cores, refresh_rates)

MIXES = ("100", "90/10", "80/10/10", "70/10/10/10", "60/10/10/10/10")
LOAD_SHARE = 0.25
MAX_RATIO = 2.0
MAX_WINDOW_MICROS = 50_000
WRITER_RATE = 65_000_000
MIN_THROUGHPUT = 0.7
# With fewer operations than this, p99.9 means nothing.
MIN_COUNT = 1000
# Cores that other processes may use; above this, figures are not valid.
MAX_OTHERS = 0.2
SPINNER_SECONDS = 10
# Programs that use only one of the resources of a refresh. "idle spinner" and
# "writer" use CPU that no process wants; "writer" writes and syncs files.
OTHERS = ("spinner", "idle spinner", "writer")
WARM_SECONDS = 3


def whole(mix, mixes):
    """Returns true for mixes with which the whole database is refreshed."""
    return mix in (mixes[0], mixes[-1])


def share_of(settings, mix):
    return 1 if whole(mix, settings.mix_list) else settings.share_all


def estimate(settings, payload):
    """Returns [(what, seconds)], a rough estimate before anything is run."""
    def refresh(share):
        return 3 + payload * share / 100e6
    around = WARM_SECONDS + settings.before + settings.after + 3
    plan = [("make and seed", 10 + payload / 60e6)]
    for mix in settings.mix_list:
        plan.append(("peak " + mix, settings.peak + WARM_SECONDS + 2))
        plan.append((mix, around + refresh(share_of(settings, mix))))
        if settings.spinner:
            plan.append(("beside others " + mix, len(OTHERS) * (
                WARM_SECONDS + 4 + min(SPINNER_SECONDS, settings.before))))
        if settings.throughput:
            beside = 2 * (WARM_SECONDS + 4)
            plan.append(("throughput " + mix, beside +
                         settings.peak + 2 * refresh(
                             settings.share_throughput)))
    return plan


def answer(world):
    settings = world.settings
    plan = estimate(settings, world.payload)
    world.say("about %.0f minutes: %s" % (
        sum(seconds for _, seconds in plan) / 60,
        ", ".join("%s %.0f s" % one for one in plan)))
    world.make_source()
    world.seed()
    answers = []
    for mix in settings.mix_list:
        answers += answer_mix(world, mix)
    return {"answers": answers,
            "problems": [text for one in answers for text in one["problems"]]}


def answer_mix(world, mix):
    settings = world.settings
    peak = phase(world.serve(
        "peak " + mix, "--idle", "--closed-loop", "--mix", mix, "--warm",
        WARM_SECONDS, "--before", settings.peak, "--during", 0, "--after", 0),
                 "before")["operations_per_second"]
    rate = settings.rate or LOAD_SHARE * peak
    world.say("%s: peak %.0f/s, load %.0f/s" % (mix, peak, rate))
    found = [judge(mix, world.serve_and_refresh(
        mix, share_of(settings, mix), "--mix", mix, "--rate", rate, "--warm",
        WARM_SECONDS, "--before", settings.before, "--after", settings.after),
                   peak)]
    world.say(line(found[0]))
    cores = found[0]["pipeline_cores"]
    if settings.spinner and cores > 0:
        found[0]["phases"].update({
            name: beside_other(world, name, mix, rate, cores)
            for name in OTHERS})
    if settings.throughput:
        found.append(throughput(world, mix))
        world.say(line(found[-1]))
    return found


def beside_other(world, name, mix, rate, cores):
    words = {"spinner": ["--spinner", cores],
             "idle spinner": ["--spinner", cores, "--spinner-idle"],
             "writer": ["--writer", WRITER_RATE]}[name]
    settings = world.settings
    return percentiles(phase(world.serve(
        name + " " + mix, "--mix", mix, "--rate", rate, "--warm", WARM_SECONDS,
        "--before", 0, "--during", min(SPINNER_SECONDS, settings.before),
        "--after", 0, *words), "during"))


def percentiles(one):
    return {kind: {key: one[kind][key] for key in
                   ("count", "p50_us", "p99_us", "p999_us", "max_us")}
            for kind in (*KINDS, "heartbeat")}


def judge(name, run, peak):
    by_phase = {part: percentiles(phase(run, part)) for part in (
        "before", "during", "after", "during/transfer", "during/publish",
        "during/compaction")}
    problems = []
    for kind in ("get", "write"):
        before = by_phase["before"][kind]
        during = by_phase["during"][kind]
        if min(before["count"], during["count"]) < MIN_COUNT:
            continue
        ratio = during["p999_us"] / before["p999_us"]
        if ratio > MAX_RATIO:
            problems.append("%s: p99.9 of %s is %.1f times the baseline" % (
                name, kind, ratio))
    rate, all_in_all = refresh_rates(run)
    p99, longest = blocked_window(run)
    if longest > MAX_WINDOW_MICROS:
        problems.append("%s: writes were blocked for %.0f ms" % (
            name, longest / 1e3))
    if run["missing_reads"]:
        problems.append("%s: %d keys were not found" % (
            name, run["missing_reads"]))
    others = max(cores_of_others(phase(run, part))
                 for part in ("before", "during"))
    if others > MAX_OTHERS:
        problems.append("%s: something else took %.1f cores meanwhile" % (
            name, others))
    after = run["tables"]["after"]
    return {"name": name, "mix": name, "peak_per_second": peak,
            "rate_per_second": run["load"]["rate_per_second"],
            "phases": by_phase, "refresh_bytes_per_second": rate,
            "bytes_per_second_with_compaction": all_in_all,
            "sst_bytes": run["refresh"]["sst_bytes"],
            "stage_seconds": {stage: phase(run, "during/" + stage)["seconds"]
                              for stage in ("prepare", "transfer", "publish",
                                            "compaction")},
            "blocked_p99_us": p99, "blocked_max_us": longest,
            "ingest_calls": run["refresh"]["ingest_calls"],
            "pipeline_cores": pipeline_cores(run, moving(run)),
            "others_cores": others,
            "compaction_cores": pipeline_cores(run, phase(
                run, "during/compaction")),
            "disk_ratio": after["bytes"] / max(
                1, run["tables"]["before"]["bytes"]), "problems": problems}


def throughput(world, mix):
    """Measures a closed loop beside a refresh, and beside a spinner.

    The refresh's compaction uses less CPU than its other phases, and is
    reported separately.
    """
    settings = world.settings
    name = "throughput " + mix
    run = world.serve_and_refresh(
        name, settings.share_throughput, "--mix", mix, "--closed-loop", "--warm", WARM_SECONDS, "--before",
        settings.peak, "--after", 0)
    during = moving(run)
    cores = pipeline_cores(run, during)
    beside = phase(world.serve(
        name + " beside a spinner", "--mix", mix, "--closed-loop", "--spinner",
        max(cores, 0.01), "--warm", WARM_SECONDS, "--before", 0, "--during",
        max(1, during["seconds"]), "--after", 0), "during")
    share = during["operations_per_second"] / beside["operations_per_second"]
    p99 = {kind: phase(run, "during/transfer")[kind]["p99_us"] /
           beside[kind]["p99_us"]
           for kind in KINDS if beside[kind]["count"] >= MIN_COUNT}
    problems = [] if share >= MIN_THROUGHPUT else [
        "%s: %.2f of the operations beside a spinner" % (name, share)]
    problems += ["%s: p99 of %s is %.1f times that beside a spinner" % (
        name, kind, ratio) for kind, ratio in p99.items()
                 if ratio > MAX_RATIO]
    return {"name": name, "mix": mix,
            "alone_per_second": phase(run, "before")["operations_per_second"],
            "refresh_per_second": during["operations_per_second"],
            "compaction_per_second": phase(run, "during/compaction")[
                "operations_per_second"],
            "spinner_per_second": beside["operations_per_second"],
            "pipeline_cores": cores, "share": share, "p99_ratios": p99,
            "refresh_bytes_per_second": refresh_rates(run)[0],
            "problems": problems}


def ratio_of(one, kind, key, part="during"):
    before = one["phases"]["before"][kind][key]
    return one["phases"][part][kind][key] / before if before else 0


def line(one):
    if "share" in one:
        return "%s: %.0f/s alone, %.0f/s refreshing, %.0f/s beside %.2f " \
            "cores: %.2f" % (one["name"], one["alone_per_second"],
                             one["refresh_per_second"],
                             one["spinner_per_second"], one["pipeline_cores"],
                             one["share"])
    text = "%s: %.0f MB/s (%.0f with compaction), window %.1f ms, %.2f " \
        "cores" % (one["name"], one["refresh_bytes_per_second"] / 1e6,
                   one["bytes_per_second_with_compaction"] / 1e6,
                   one["blocked_max_us"] / 1e3, one["pipeline_cores"])
    for kind in KINDS:
        if one["phases"]["before"][kind]["count"]:
            text += "; %s p99.9 %.0f -> %.0f us" % (
                kind, one["phases"]["before"][kind]["p999_us"],
                one["phases"]["during"][kind]["p999_us"])
    return text


def triple(found):
    return "%.0f / %.0f / %.0f" % (found["p50_us"], found["p99_us"],
                                   found["p999_us"])


def latency_table(answers):
    text = ("| Run | Load /s | Kind | Before | During | After | Spinner | "
            "Idle spinner | Writer | p99.9 during / before | Transfer | "
            "Compaction | Idle spinner | Writer |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
    for one in answers:
        for kind in KINDS:
            if not one["phases"]["before"][kind]["count"]:
                continue
            text += "| %s |\n" % " | ".join([
                one["name"], "%.0f" % one["rate_per_second"], kind,
                *[triple(one["phases"][part][kind])
                  if part in one["phases"] else "-"
                  for part in ("before", "during", "after", *OTHERS)],
                *["%.2f" % ratio_of(one, kind, "p999_us", part)
                  if part in one["phases"] else "-"
                  for part in ("during", "during/transfer",
                               "during/compaction", *OTHERS[1:])]])
    return text


def refresh_table(answers):
    text = ("| Run | MB | Transfer s | Compaction s | MB/s | With compaction "
            "| Cores | compacting | Others' cores | Ingest calls | Blocked "
            "p99 ms | max ms | Heartbeat p99.9 us before | during | Disk "
            "after / before |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
    for one in answers:
        stages = one["stage_seconds"]
        text += "| %s |\n" % " | ".join([
            one["name"], "%.0f" % (one["sst_bytes"] / 1e6),
            "%.1f" % (sum(stages.values()) - stages["compaction"]),
            "%.1f" % stages["compaction"],
            "%.0f" % (one["refresh_bytes_per_second"] / 1e6),
            "%.0f" % (one["bytes_per_second_with_compaction"] / 1e6),
            "%.2f" % one["pipeline_cores"], "%.2f" % one["compaction_cores"],
            "%.2f" % one["others_cores"], "%d" % one["ingest_calls"],
            "%.1f" % (one["blocked_p99_us"] / 1e3),
            "%.1f" % (one["blocked_max_us"] / 1e3),
            *["%.0f" % one["phases"][part]["heartbeat"]["p999_us"]
              for part in ("before", "during")], "%.2f" % one["disk_ratio"]])
    return text


def throughput_table(answers):
    text = ("| Mix | Alone /s | Compacting /s | Refreshing /s | Beside a "
            "spinner /s | Spinner's cores | Refreshing / spinner (at least "
            "%.1f) | p99 ratios (at most %.0f) |\n"
            "|---|---|---|---|---|---|---|---|\n" % (MIN_THROUGHPUT,
                                                     MAX_RATIO))
    for one in answers:
        text += "| %s |\n" % " | ".join([
            one["mix"], *["%.0f" % one[key] for key in (
                "alone_per_second", "compaction_per_second",
                "refresh_per_second", "spinner_per_second")],
            "%.2f" % one["pipeline_cores"], "%.2f" % one["share"],
            ", ".join("%s %.2f" % pair for pair in
                      one["p99_ratios"].items())])
    return text


def as_text(answers):
    refreshes = [one for one in answers if "phases" in one]
    closed = [one for one in answers if "share" in one]
    text = ""
    if refreshes:
        text += "Latency from the intended send time in microseconds, " \
            "p50 / p99 / p99.9:\n\n" + latency_table(refreshes) + \
            "\nThe refreshes:\n\n" + refresh_table(refreshes)
    if closed:
        text += "\nAs fast as it goes (closed loop):\n\n" + \
            throughput_table(closed)
    return text
