// A Java application with rocksdbjni (or a fork with the same API): DB,
// TransactionDB or TtlDB, with column families like those of Java applications.
//
// usage: java Jni [db=plain|txn|ttl] [wal=true|false] [format=N] [blobs=true|false]
//     [merge=NAME]
//
// Reads verbs from standard input; README.md lists them. `dump DIR strict` and
// `dump DIR lenient` open DIR with the options that RocksDB itself loads from
// the OPTIONS file, without and with ignore_unknown_options.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.*;
import org.rocksdb.*;

public final class Jni {
  static final int KEYS = 6000;
  static final Map<String, String> settings = new HashMap<>();

  static boolean is(String name) {
    return Boolean.parseBoolean(settings.get(name));
  }

  // --- options of the application ---------------------------------------------

  static ColumnFamilyOptions withProperties(String... pairs) {
    Properties properties = new Properties();
    for (int i = 0; i < pairs.length; i += 2) properties.setProperty(pairs[i], pairs[i + 1]);
    ColumnFamilyOptions options = ColumnFamilyOptions.getColumnFamilyOptionsFromProps(properties);
    if (options == null) throw new IllegalStateException("no options from " + properties);
    return options;
  }

  static BlockBasedTableConfig table() {
    BlockBasedTableConfig table = new BlockBasedTableConfig();
    if (settings.containsKey("format")) {
      table.setFormatVersion(Integer.parseInt(settings.get("format")));
    }
    return table;
  }

  // Without a format_version, uses the library's own table options, because the
  // defaults of BlockBasedTableConfig differ.
  static ColumnFamilyOptions formatted(ColumnFamilyOptions options) {
    return settings.containsKey("format") ? options.setTableFormatConfig(table()) : options;
  }

  static ColumnFamilyOptions plain() {
    return formatted(new ColumnFamilyOptions());
  }

  static ColumnFamilyOptions small(ColumnFamilyOptions options) {
    return options.setWriteBufferSize(1 << 20).setTargetFileSizeBase(1 << 20)
        .setMaxBytesForLevelBase(4 << 20);
  }

  static Map<String, ColumnFamilyOptions> families() {
    Map<String, ColumnFamilyOptions> families = new LinkedHashMap<>();
    families.put("default", plain());
    families.put("bloom", small(new ColumnFamilyOptions())
        .setTableFormatConfig(table().setFilterPolicy(new BloomFilter(10, false)))
        .setCompressionType(CompressionType.LZ4_COMPRESSION));
    families.put("partitioned", small(new ColumnFamilyOptions())
        .setTableFormatConfig(table().setIndexType(IndexType.kTwoLevelIndexSearch)
            .setPartitionFilters(true).setFilterPolicy(new BloomFilter(10, false))
            .setChecksumType(ChecksumType.kxxHash64))
        .setCompressionType(CompressionType.ZSTD_COMPRESSION));
    if (!settings.get("db").equals("ttl")) {
      families.put("appended",
          small(plain()).setMergeOperatorName(settings.get("merge")));
    }
    families.put("reverse", plain()
        .setComparator(BuiltinComparator.REVERSE_BYTEWISE_COMPARATOR));
    if (is("blobs")) {
      families.put("blobs", formatted(
          withProperties("enable_blob_files", "true", "min_blob_size", "200")));
    }
    return families;
  }

  // --- an open database -------------------------------------------------------

  static final class Open implements AutoCloseable {
    final RocksDB db;
    final List<String> names = new ArrayList<>();
    final List<ColumnFamilyHandle> handles = new ArrayList<>();

    Open(String dir, boolean create) throws RocksDBException {
      DBOptions options = new DBOptions().setCreateIfMissing(create)
          .setCreateMissingColumnFamilies(create).setMaxBackgroundJobs(2);
      List<ColumnFamilyDescriptor> descriptors = new ArrayList<>();
      for (Map.Entry<String, ColumnFamilyOptions> family : families().entrySet()) {
        descriptors.add(new ColumnFamilyDescriptor(bytes(family.getKey()), family.getValue()));
      }
      db = open(options, dir, descriptors);
    }

    Open(String dir, String mode) throws RocksDBException {
      DBOptions options = new DBOptions();
      List<ColumnFamilyDescriptor> descriptors = new ArrayList<>();
      OptionsUtil.loadLatestOptions(
          new ConfigOptions().setIgnoreUnknownOptions(mode.equals("lenient")),
          dir, options, descriptors);
      db = open(options, dir, descriptors);
    }

    private RocksDB open(DBOptions options, String dir, List<ColumnFamilyDescriptor> descriptors)
        throws RocksDBException {
      for (ColumnFamilyDescriptor descriptor : descriptors) {
        names.add(new String(descriptor.getName(), StandardCharsets.UTF_8));
      }
      switch (settings.get("db")) {
        case "txn":
          return TransactionDB.open(options, new TransactionDBOptions(), dir, descriptors, handles);
        case "ttl":
          return TtlDB.open(options, dir, descriptors, handles,
              Collections.nCopies(descriptors.size(), 1_000_000), false);
        default:
          return RocksDB.open(options, dir, descriptors, handles);
      }
    }

    // The writes of a `round` are the same at each call.
    void write(long round, int count) throws RocksDBException {
      Random random = new Random(round);
      try (WriteOptions options = new WriteOptions().setDisableWAL(!is("wal"))) {
        for (int i = 0; i < handles.size(); i++) {
          ColumnFamilyHandle handle = handles.get(i);
          boolean merge = names.get(i).equals("appended");
          try (WriteBatch batch = new WriteBatch()) {
            for (int n = 0; n < count; n++) {
              byte[] key = bytes(String.format("key%08d", random.nextInt(KEYS)));
              int what = random.nextInt(100);
              if (what < 10) {
                batch.delete(handle, key);
              } else if (merge && what < 60) {
                batch.merge(handle, key, bytes(Long.toHexString(random.nextLong())));
              } else {
                byte[] value = new byte[random.nextInt(400)];
                random.nextBytes(value);
                Arrays.fill(value, value.length / 2, value.length, (byte) round);
                batch.put(handle, key, value);
              }
            }
            if (settings.get("db").equals("plain") && random.nextInt(3) == 0) {
              int first = random.nextInt(KEYS - 20);
              byte[] low = bytes(String.format("key%08d", first));
              byte[] high = bytes(String.format("key%08d", first + 20));
              boolean reverse = names.get(i).equals("reverse");
              batch.deleteRange(handle, reverse ? high : low, reverse ? low : high);
            }
            db.write(options, batch);
          }
        }
      }
    }

    void flush() throws RocksDBException {
      try (FlushOptions options = new FlushOptions().setWaitForFlush(true)) {
        for (ColumnFamilyHandle handle : handles) db.flush(options, handle);
      }
    }

    // {"FAMILY": [COUNT, "SHA-256 of all entries"], ...}
    String digest() throws Exception {
      StringBuilder json = new StringBuilder();
      Map<String, String> sorted = new TreeMap<>();
      for (int i = 0; i < handles.size(); i++) {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        long count = 0;
        try (RocksIterator iterator = db.newIterator(handles.get(i))) {
          for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
            add(digest, iterator.key());
            add(digest, iterator.value());
            count++;
          }
          iterator.status();
        }
        StringBuilder hex = new StringBuilder();
        for (byte b : digest.digest()) hex.append(String.format("%02x", b));
        sorted.put(names.get(i), "[" + count + ", \"" + hex.substring(0, 32) + "\"]");
      }
      for (Map.Entry<String, String> family : sorted.entrySet()) {
        json.append(json.length() == 0 ? "{" : ", ").append('"').append(family.getKey())
            .append("\": ").append(family.getValue());
      }
      return json.append('}').toString();
    }

    @Override
    public void close() throws RocksDBException {
      for (ColumnFamilyHandle handle : handles) handle.close();
      db.closeE();
    }
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static void add(MessageDigest digest, byte[] field) {
    digest.update(bytes(field.length + ":"));
    digest.update(field);
  }

  // --- verbs ------------------------------------------------------------------

  static Open held;

  static String answer(String[] words) throws Exception {
    String dir = words.length > 1 ? words[1] : null;
    switch (words[0]) {
      case "make":
        for (int session = 0; session < 3; session++) {
          try (Open open = new Open(dir, session == 0)) {
            open.write(Long.parseLong(words[2]) * 1000 + session, 4000);
            if (session < 2 || !is("wal")) open.flush();
            if (session == 1) for (ColumnFamilyHandle h : open.handles) open.db.compactRange(h);
          }
        }
        return "{}";
      case "change":
        try (Open open = new Open(dir, false)) {
          open.write(Long.parseLong(words[2]), 200);
          if (!is("wal")) open.flush();
        }
        return "{}";
      case "flush":
        held.flush();
        return "{}";
      case "compact":
        try (Open open = new Open(dir, false)) {
          for (ColumnFamilyHandle h : open.handles) open.db.compactRange(h);
        }
        return "{}";
      case "dump":
        String mode = words.length > 2 ? words[2] : "code";
        try (Open open = mode.equals("code") ? new Open(dir, false) : new Open(dir, mode)) {
          return open.digest();
        }
      case "hold":
        held = new Open(dir, false);
        return "{}";
      case "write":
        held.write(Long.parseLong(words[1]), 200);
        return "{}";
      case "digest":
        return held.digest();
      case "storm":
        new Thread(() -> {
          try {
            for (long round = 1 << 20;; round++) held.write(round, 50);
          } catch (RocksDBException e) {
            e.printStackTrace();
          }
        }).start();
        return "{}";
      case "release":
        held.close();
        held = null;
        return "{}";
      default:
        throw new IllegalArgumentException("unknown verb " + words[0]);
    }
  }

  public static void main(String[] args) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err);
    settings.put("db", "plain");
    settings.put("wal", "true");
    settings.put("blobs", "true");
    settings.put("merge", "stringappend");
    for (String arg : args) settings.put(arg.split("=")[0], arg.split("=")[1]);
    RocksDB.loadLibrary();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer;
      try {
        answer = "ok " + answer(line.trim().split(" "));
      } catch (Throwable e) {
        answer = "error " + String.valueOf(e).replace('\n', ' ');
      }
      out.println(answer);
      out.flush();
    }
    System.exit(0);
  }
}
