import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;

import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.io.sstable.CQLSSTableWriter;

/**
 * How fast Cassandra's own CQLSSTableWriter writes rows that come in the order of the SSTable, so that it neither sorts nor
 * gathers them: folder, partitions, rows a partition, bytes a value, rounds. Prints the seconds of each round, from the
 * first row to the closed SSTable; the files of the last round stay.
 */
public class WriteRows
{
    public static void main(String[] args) throws Exception
    {
        Path folder = Path.of(args[0]);
        int partitions = Integer.parseInt(args[1]), rows = Integer.parseInt(args[2]);
        int bytes = Integer.parseInt(args[3]), rounds = Integer.parseInt(args[4]);
        Integer[] keys = keys(partitions);
        for (int round = 0; round < rounds; round++)
        {
            File[] old = folder.toFile().listFiles();
            for (File file : old == null ? new File[0] : old)
                file.delete();
            Files.createDirectories(folder);
            System.out.println(write(folder.toFile(), keys, rows, bytes));
        }
        System.exit(0);
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

    private static double write(File folder, Integer[] keys, int rows, int bytes) throws Exception
    {
        CQLSSTableWriter writer =
            CQLSSTableWriter.builder()
                            .inDirectory(folder.getPath())
                            .forTable("CREATE TABLE lab.rows (k int, c int, v blob, PRIMARY KEY (k, c))")
                            .using("INSERT INTO lab.rows (k, c, v) VALUES (?, ?, ?) USING TIMESTAMP 1700000000000000")
                            .sorted()
                            .build();
        long start = System.nanoTime();
        byte[] value = new byte[bytes];
        for (int key : keys)
        {
            for (int row = 0; row < rows; row++)
            {
                fill(value, key, row);
                writer.addRow(key, row, ByteBuffer.wrap(value.clone()));
            }
        }
        writer.close();
        return (System.nanoTime() - start) / 1e9;
    }

    /** Half of a value repeats, half does not: compressors find something, but not everything. */
    private static void fill(byte[] value, int key, int row)
    {
        long random = key * 0x9E3779B97F4A7C15L + row;
        for (int i = 0; i < value.length / 2; i++)
        {
            random = random * 6364136223846793005L + 1442695040888963407L;
            value[i] = (byte) (random >>> 56);
        }
    }
}
