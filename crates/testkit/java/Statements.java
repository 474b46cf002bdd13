// Statements with values to bind, each executed at a second of its own, and what they return as bytes.
//
//     NOW TAB STATEMENT TAB value TAB …        a line of what is run
//     value TAB value TAB …                    a line of what is returned: a row
//
// A value is in hexadecimal; "-" is null.

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.cassandra.cql3.CQLStatement;
import org.apache.cassandra.cql3.QueryOptions;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.db.ConsistencyLevel;
import org.apache.cassandra.service.QueryState;
import org.apache.cassandra.service.pager.PagingState;
import org.apache.cassandra.transport.Dispatcher;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.transport.messages.ResultMessage;
import org.apache.cassandra.utils.ByteBufferUtil;

class Statements
{
    private static final int PAGE = 2000;

    private final QueryState state;

    /** Each text is parsed once, as long as the schema stays. */
    private final Map<String, CQLStatement> parsed = new HashMap<>();

    Statements(QueryState state)
    {
        this.state = state;
    }

    /** The schema has changed. */
    void forget()
    {
        parsed.clear();
    }

    /** Runs all of a file; says how many there were. */
    long run(String file) throws Exception
    {
        long count = 0;
        try (BufferedReader lines = Files.newBufferedReader(Path.of(file)))
        {
            for (String line = lines.readLine(); line != null; line = lines.readLine())
            {
                String[] words = line.split("\t", -1);
                List<ByteBuffer> values = new ArrayList<>();
                for (int i = 2; i < words.length; i++)
                    values.add(value(words[i]));
                try
                {
                    process(words[1], Long.parseLong(words[0]), values, null);
                }
                catch (RuntimeException e)
                {
                    throw new RuntimeException(line.substring(0, Math.min(400, line.length())), e);
                }
                count++;
            }
        }
        return count;
    }

    /** Writes the rows that a statement returns to a file; says how many there are. */
    long read(long now, String file, String text) throws Exception
    {
        long rows = 0;
        try (BufferedWriter lines = Files.newBufferedWriter(Path.of(file), StandardCharsets.US_ASCII))
        {
            PagingState page = null;
            do
            {
                ResultMessage.Rows result = (ResultMessage.Rows) process(text, now, List.of(), page);
                for (List<ByteBuffer> row : result.result.rows)
                {
                    for (int i = 0; i < row.size(); i++)
                        lines.append(i == 0 ? "" : "\t").append(text(row.get(i)));
                    lines.append('\n');
                }
                rows += result.result.rows.size();
                page = result.result.metadata.getPagingState();
            }
            while (page != null);
        }
        return rows;
    }

    private ResultMessage process(String text, long now, List<ByteBuffer> values, PagingState page)
    {
        CQLStatement statement = parsed.computeIfAbsent(text, t -> QueryProcessor.getStatement(t, state.getClientState()));
        QueryOptions options = QueryOptions.create(ConsistencyLevel.ONE, values, false, PAGE, page, null,
                                                   ProtocolVersion.CURRENT, null, Long.MIN_VALUE, now);
        return QueryProcessor.instance.process(statement, state, options, Dispatcher.RequestTime.forImmediateExecution());
    }

    private static ByteBuffer value(String word)
    {
        return word.equals("-") ? null : ByteBufferUtil.hexToBytes(word);
    }

    private static String text(ByteBuffer value)
    {
        return value == null ? "-" : ByteBufferUtil.bytesToHex(value);
    }
}
