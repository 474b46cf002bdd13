// The clock of the node: that of the system, or a second at which it has been stopped.

import org.apache.cassandra.utils.Clock;

public class LabClock implements Clock
{
    /** Milliseconds; negative where the clock runs. */
    private static volatile long stoppedAt = -1;

    /** Does something at a second, as if it were now. What takes its time meanwhile goes on. */
    static void at(long second, Runnable task)
    {
        stoppedAt = second * 1000;
        try
        {
            task.run();
        }
        finally
        {
            stoppedAt = -1;
        }
    }

    @Override
    public long nanoTime()
    {
        return System.nanoTime();
    }

    @Override
    public long currentTimeMillis()
    {
        long stopped = stoppedAt;
        return stopped < 0 ? System.currentTimeMillis() : stopped;
    }
}
