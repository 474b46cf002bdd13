import java.nio.ByteBuffer;
import java.nio.ByteOrder;

import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.db.ColumnFamilyStore;

/**
 * The rows of `peers/src/rows.rs`, written within the node by a prepared batch for each 1,000 of them, through the commit log where
 * the keyspace has one; then a flush, and a compaction of all.
 */
final class PeerLoads
{
    private static final int BATCH = 1000;

    /** The seconds that it takes, from the first row to the one SSTable. */
    static double run(ColumnFamilyStore table, int rows, int valueSize)
    {
        String insert = "INSERT INTO " + table.metadata() + " (k, c, v) VALUES (0, ?, ?);";
        long start = System.nanoTime();
        for (int first = 0; first < rows; first += BATCH)
        {
            int count = Math.min(BATCH, rows - first);
            Object[] values = new Object[2 * count];
            for (int row = 0; row < count; row++)
            {
                values[2 * row] = 2 * (first + row);
                values[2 * row + 1] = value(first + row, valueSize);
            }
            QueryProcessor.executeInternal("BEGIN UNLOGGED BATCH " + insert.repeat(count) + " APPLY BATCH", values);
        }
        table.forceBlockingFlush(ColumnFamilyStore.FlushReason.USER_FORCED);
        table.forceMajorCompaction();
        return (System.nanoTime() - start) / 1e9;
    }

    private static ByteBuffer value(int row, int size)
    {
        ByteBuffer value = ByteBuffer.allocate((size + 7) / 8 * 8).order(ByteOrder.LITTLE_ENDIAN);
        for (long word = 0; value.hasRemaining(); word++)
            value.putLong(PeerReads.mixed((long) row << 16 | word));
        return value.flip().limit(size).order(ByteOrder.BIG_ENDIAN);
    }
}
