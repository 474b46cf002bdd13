import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;

import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.io.sstable.CQLSSTableWriter;

/**
 * How fast Cassandra's own CQLSSTableWriter writes rows: folder, partitions, rows a partition, bytes a value, rounds, and
 * "sorted" or "gathered". Sorted rows go to the SSTable as they come, as in a flush; otherwise the writer gathers and sorts
 * them first, which is what it does unless it is told not to. Prints the seconds of each round, from the first row to the
 * closed SSTable; the files of the last round stay. A whole node puts the same rows into a memtable with {@link #fill}.
 */
public class WriteRows
{
    /** How many different values there are: together more than a compressor looks back. */
    private static final int VALUES = 4096;

    public static void main(String[] args) throws Exception
    {
        Path folder = Path.of(args[0]);
        int partitions = Integer.parseInt(args[1]), rows = Integer.parseInt(args[2]);
        int bytes = Integer.parseInt(args[3]), rounds = Integer.parseInt(args[4]);
        boolean sorted = args[5].equals("sorted");
        Integer[] keys = keys(partitions);
        for (int round = 0; round < rounds; round++)
        {
            File[] old = folder.toFile().listFiles();
            for (File file : old == null ? new File[0] : old)
                file.delete();
            Files.createDirectories(folder);
            System.out.println(write(folder.toFile(), keys, rows, bytes, sorted));
        }
        System.exit(0);
    }

    /** Puts the rows into the memtable of a table, as a client's writes would. */
    static void fill(String table, int partitions, int rows, int bytes)
    {
        String insert = "INSERT INTO " + table + " (k, c, v) VALUES (?, ?, ?) USING TIMESTAMP 1700000000000000";
        byte[][] values = values(bytes);
        for (int key : keys(partitions))
        {
            for (int row = 0; row < rows; row++)
            {
                QueryProcessor.executeInternal(insert, key, row, value(values, key, row));
            }
        }
    }

    /** Keys in the order of their tokens. */
    private static Integer[] keys(int count)
    {
        Integer[] keys = new Integer[count];
        Arrays.setAll(keys, i -> i);
        Arrays.sort(keys, Comparator.comparing((Integer key) -> {
            ByteBuffer bytes = ByteBuffer.allocate(4);
            bytes.putInt(0, key);
            return Murmur3Partitioner.instance.decorateKey(bytes);
        }));
        return keys;
    }

    private static double write(File folder, Integer[] keys, int rows, int bytes, boolean sorted) throws Exception
    {
        CQLSSTableWriter.Builder builder =
            CQLSSTableWriter.builder()
                            .inDirectory(folder.getPath())
                            .forTable("CREATE TABLE lab.rows (k int, c int, v blob, PRIMARY KEY (k, c))")
                            .using("INSERT INTO lab.rows (k, c, v) VALUES (?, ?, ?) USING TIMESTAMP 1700000000000000");
        CQLSSTableWriter writer = (sorted ? builder.sorted() : builder).build();
        byte[][] values = values(bytes);
        long start = System.nanoTime();
        for (int key : keys)
        {
            for (int row = 0; row < rows; row++)
            {
                writer.addRow(key, row, value(values, key, row));
            }
        }
        writer.close();
        return (System.nanoTime() - start) / 1e9;
    }

    private static ByteBuffer value(byte[][] values, int key, int row)
    {
        return ByteBuffer.wrap(values[(int) ((key * 31L + row) % VALUES)]);
    }

    /**
     * Values of which half repeats and half does not: compressors find something, but not everything. They are made
     * beforehand, so that making them is not what is measured.
     */
    private static byte[][] values(int bytes)
    {
        byte[][] values = new byte[VALUES][bytes];
        long random = 1;
        for (byte[] value : values)
        {
            for (int i = 0; i < bytes / 2; i++)
            {
                random = random * 6364136223846793005L + 1442695040888963407L;
                value[i] = (byte) (random >>> 56);
            }
        }
        return values;
    }
}
