// A key-value store of Kafka Streams: the store's own code (RocksDBStore, with
// the family of timestamped values, universal compaction and no WAL), in the
// directory that a task would use: DIR/rocksdb/counts. Needs no broker.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.*;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.state.*;

public final class KafkaStore {
  static final int KEYS = 6000;

  static TimestampedKeyValueStore<String, String> open(String dir) {
    Properties properties = new Properties();
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1");
    MockProcessorContext<Void, Void> context =
        new MockProcessorContext<>(properties, new TaskId(0, 0), new File(dir));
    TimestampedKeyValueStore<String, String> store =
        Stores.timestampedKeyValueStoreBuilder(Stores.persistentTimestampedKeyValueStore("counts"),
                  Serdes.String(), Serdes.String())
            .withLoggingDisabled().withCachingDisabled().build();
    store.init(context.getStateStoreContext(), store);
    return store;
  }

  static void write(TimestampedKeyValueStore<String, String> store, long round, int count) {
    Random random = new Random(round);
    for (int n = 0; n < count; n++) {
      String key = String.format("key%08d", random.nextInt(KEYS));
      if (random.nextInt(100) < 10) {
        store.delete(key);
      } else {
        StringBuilder value = new StringBuilder();
        for (int i = random.nextInt(12); i >= 0; i--) value.append(Long.toHexString(random.nextLong()));
        store.put(key, ValueAndTimestamp.make(value.toString(), round * 1000 + n));
      }
    }
  }

  static String read(TimestampedKeyValueStore<String, String> store) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    long count = 0;
    try (KeyValueIterator<String, ValueAndTimestamp<String>> all = store.all()) {
      while (all.hasNext()) {
        var entry = all.next();
        String line = entry.key + "=" + entry.value.timestamp() + ":" + entry.value.value() + "\n";
        digest.update(line.getBytes(StandardCharsets.UTF_8));
        count++;
      }
    }
    StringBuilder hex = new StringBuilder();
    for (byte b : digest.digest()) hex.append(String.format("%02x", b));
    return "{\"counts\": [" + count + ", \"" + hex.substring(0, 32) + "\"]}";
  }

  static TimestampedKeyValueStore<String, String> held;

  static String answer(String[] words) throws Exception {
    TimestampedKeyValueStore<String, String> store;
    switch (words[0]) {
      case "make":
        for (int session = 0; session < 3; session++) {
          store = open(words[1]);
          write(store, Long.parseLong(words[2]) * 1000 + session, 4000);
          store.flush();  // like a commit
          store.close();
        }
        return "{}";
      case "change":
        store = open(words[1]);
        write(store, Long.parseLong(words[2]), 200);
        store.flush();
        store.close();
        return "{}";
      case "dump":
        store = open(words[1]);
        try {
          return read(store);
        } finally {
          store.close();
        }
      case "hold":
        held = open(words[1]);
        return "{}";
      case "write":
        write(held, Long.parseLong(words[1]), 200);
        return "{}";
      case "flush":
        held.flush();
        return "{}";
      case "digest":
        return read(held);
      case "storm":
        new Thread(() -> {
          for (long round = 1 << 20;; round++) {
            write(held, round, 50);
            if (round % 20 == 0) held.flush();
          }
        }).start();
        return "{}";
      case "release":
        held.close();
        return "{}";
      default:
        throw new IllegalArgumentException("unknown verb " + words[0]);
    }
  }

  public static void main(String[] args) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer;
      try {
        answer = "ok " + answer(line.trim().split(" "));
      } catch (Throwable e) {
        String cause = e.getCause() == null ? "" : " " + e.getCause();
        answer = "error " + (e + cause).replace('\n', ' ');
      }
      out.println(answer);
      out.flush();
    }
    System.exit(0);
  }
}
