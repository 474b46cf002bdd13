import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import com.sun.management.OperatingSystemMXBean;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.UntypedResultSet;

/**
 * The reads of `peers/src/work.rs`, by prepared statements within the node: the same rows, in the same order, and summed in the
 * same way, see `peers/src/rows.rs`. Nothing goes through a network or is encoded for it.
 */
final class PeerReads
{
    private static final int SLICE = 100, READ = 64, SKIP = 4096, PAGE = 5000;
    private static final OperatingSystemMXBean CPU = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

    private final String select;
    private final String what;
    private final long rows, scanned;

    /** What was found: how many rows, and the sums of their ends and of all their bytes. */
    private long found, quick, full;

    private PeerReads(String table, String what, long rows, long scanned)
    {
        this.select = "SELECT c, v FROM " + table;
        this.what = what;
        this.rows = rows;
        this.scanned = scanned;
    }

    /**
     * The sum of the rows that are read, that of those read before, how many they are, and of each round its seconds and those of all
     * CPUs that the node took meanwhile. A round has {@code count} operations from {@code from} on, of which each of those who read
     * at once does its share.
     */
    static List<String> run(String table, String what, long warm, long from, long count, long rows, long scanned, int rounds, int readers)
        throws Exception
    {
        PeerReads before = new PeerReads(table, what, rows, scanned);
        for (long number = 0; number < warm; number++)
            before.one(number, true);
        List<String> answer = new ArrayList<>();
        for (int round = 0; round < rounds; round++)
        {
            List<PeerReads> shares = new ArrayList<>();
            for (int reader = 0; reader < readers; reader++)
                shares.add(new PeerReads(table, what, rows, scanned));
            long start = System.nanoTime(), cpuStart = CPU.getProcessCpuTime();
            if (readers == 1)
                shares.get(0).all(from, from + count);
            else
            {
                long[] began = atOnce(shares, from, count);
                start = began[0];
                cpuStart = began[1];
            }
            double seconds = (System.nanoTime() - start) / 1e9;
            double cpuSeconds = (CPU.getProcessCpuTime() - cpuStart) / 1e9;
            if (round == 0)
            {
                long sum = shares.stream().mapToLong(PeerReads::sum).sum(), found = shares.stream().mapToLong(share -> share.found).sum();
                answer.addAll(List.of(String.format("%016x", sum), String.format("%016x", before.sum()), Long.toString(found)));
            }
            answer.add(Double.toString(seconds));
            answer.add(Double.toString(cpuSeconds));
        }
        return answer;
    }

    /** A thread for each share; the time, and that of all CPUs, at which all of them were there and let go. */
    private static long[] atOnce(List<PeerReads> shares, long from, long count) throws Exception
    {
        long[] began = new long[2];
        CyclicBarrier all = new CyclicBarrier(shares.size(), () -> {
            began[0] = System.nanoTime();
            began[1] = CPU.getProcessCpuTime();
        });
        ExecutorService threads = Executors.newFixedThreadPool(shares.size());
        try
        {
            List<Callable<Void>> work = new ArrayList<>();
            for (int reader = 0; reader < shares.size(); reader++)
            {
                PeerReads share = shares.get(reader);
                long first = from + count * reader / shares.size(), end = from + count * (reader + 1) / shares.size();
                work.add(() -> { all.await(); share.all(first, end); return null; });
            }
            for (Future<Void> done : threads.invokeAll(work))
                done.get();
            return began;
        }
        finally
        {
            threads.shutdown();
        }
    }

    private void all(long from, long end)
    {
        for (long number = from; number < end; number++)
            one(number, false);
    }

    private void one(long number, boolean thoroughly)
    {
        switch (what)
        {
            case "point": take(select + " WHERE k = 0 AND c = ?", thoroughly, any(number, 0)); break;
            case "absent": take(select + " WHERE k = 0 AND c = ?", thoroughly, any(number, 0) + 1); break;
            case "slice": forward(any(number, SLICE), SLICE, thoroughly); break;
            case "reverse":
                int last = any(number, SLICE) + 2 * (SLICE - 1);
                take(select + " WHERE k = 0 AND c <= ? ORDER BY c DESC LIMIT " + SLICE, thoroughly, last);
                break;
            case "skips": forward((int) (number * (READ + SKIP) % (rows - READ)) * 2, READ, thoroughly); break;
            case "scan":
                String scan = select + " LIMIT " + scanned;
                take(QueryProcessor.executeInternalWithPaging(scan, PAGE), thoroughly);
                break;
            default: throw new IllegalArgumentException("there is no case " + what);
        }
    }

    private void forward(int from, int limit, boolean thoroughly)
    {
        take(select + " WHERE k = 0 AND c >= ? LIMIT " + limit, thoroughly, from);
    }

    private int any(long number, int less)
    {
        return (int) Long.remainderUnsigned(mixed(number), rows - less) * 2;
    }

    private void take(String statement, boolean thoroughly, int clustering)
    {
        take(QueryProcessor.executeInternal(statement, clustering), thoroughly);
    }

    private void take(UntypedResultSet result, boolean thoroughly)
    {
        for (UntypedResultSet.Row row : result)
            take(row.getInt("c"), row.getBlob("v").duplicate().order(ByteOrder.LITTLE_ENDIAN), thoroughly);
    }

    private void take(int clustering, ByteBuffer value, boolean thoroughly)
    {
        int start = value.position(), length = value.remaining();
        long ends = value.getLong(start) ^ value.getLong(start + length - 8) ^ length;
        found++;
        quick = (Long.rotateLeft(quick, 7) ^ Integer.toUnsignedLong(clustering)) + ends;
        for (int at = start; thoroughly && at < start + length; at += 8)
        {
            long word = 0;
            for (int i = Math.min(7, start + length - at - 1); i >= 0; i--)
                word = word << 8 | value.get(at + i) & 0xff;
            full = mixed(full ^ word);
        }
    }

    private long sum()
    {
        return mixed(quick ^ full) ^ found;
    }

    static long mixed(long number)
    {
        long bits = (number + 1) * 0x9e3779b97f4a7c15L;
        bits = (bits ^ bits >>> 30) * 0xbf58476d1ce4e5b9L;
        bits = (bits ^ bits >>> 27) * 0x94d049bb133111ebL;
        return bits ^ bits >>> 31;
    }
}
