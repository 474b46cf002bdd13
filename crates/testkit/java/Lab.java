// A whole Cassandra node in this Java, which does what it is told line by line:
//
//     stdin     verb TAB argument TAB argument …
//     stdout    "ok" TAB value TAB value …        or "error" TAB exception and its causes
//
// Within an argument or a value, tab, line break and backslash are \t, \n and \\. The first line of stdout says "ok" once
// the node is up. What Cassandra itself prints goes to stderr, and its log where the configuration says.
//
//     schema FILE                       all statements of a file; those that create, as one change of the schema
//     cql STATEMENT …                   each in turn
//     run FILE                          statements with values and seconds of their own, see Statements
//     read NOW FILE STATEMENT           what a statement returns at NOW, as bytes; says how many rows
//     import KS TABLE copy|move DIR …   what `nodetool import --extended-verify` asks of the node
//     verify KS TABLE DATA …            what `sstableverify --extended` does with each file
//     select KS TABLE NOW FILE          every row, as of NOW (seconds), one JSON a line; says how many
//     extra KS TABLE                    writes a few rows of made-up values
//     fill KS TABLE N N N               the rows of WriteRows into the memtable: partitions, rows of each, bytes a value
//     flush KS TABLE                    as nodetool does; says how many seconds it took
//     peers KS TABLE CASE N N N N N N N the reads of PeerReads: operations before, the first that is timed, how many are, rows
//                                       there are, rows of a scan, rounds, how many read at once
//     load KS TABLE N N                 the rows of PeerLoads, bytes a value; says how many seconds it took
//     compact KS TABLE [NOW]            as nodetool does, or as it does at that second
//     refresh KS TABLE                  as nodetool does
//     truncate KS TABLE                 as CQL does
//     files KS TABLE                    the Data.db files that are live
//     snapshot KS TABLE NAME            its folders
//     dump DATA FILE                    `sstabledump` itself
//     quit                              drains, and ends
//
// A table of a secondary index is named as Cassandra names it: table.index.

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.core.AppenderBase;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.MinimalPrettyPrinter;
import org.slf4j.LoggerFactory;

import org.apache.cassandra.cql3.CQLStatement;
import org.apache.cassandra.cql3.QueryOptions;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.statements.schema.AlterSchemaStatement;
import org.apache.cassandra.cql3.statements.schema.AlterTableStatement;
import org.apache.cassandra.cql3.statements.schema.CreateIndexStatement;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.ConsistencyLevel;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.lifecycle.SSTableSet;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.IVerifier;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.Keyspaces;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.service.CassandraDaemon;
import org.apache.cassandra.service.ClientState;
import org.apache.cassandra.service.QueryState;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.service.pager.PagingState;
import org.apache.cassandra.transport.Dispatcher;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.transport.messages.ResultMessage;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.OutputHandler;

public class Lab
{
    private static final int PAGE = 2000;

    /** Longer values are given by their hash. */
    private static final int LONGEST = 512;

    /** Made once the node is up: before that it would wake parts of Cassandra that want a configuration. */
    private static QueryState state;

    private static Statements statements;

    private static final Failures FAILURES = new Failures();

    public static void main(String[] args) throws Exception
    {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        try
        {
            // Managed: it throws where it would end all of Java.
            new CassandraDaemon(true).activate();
            // Otherwise only the native transport says so, and counters wait for it.
            StorageService.instance.setRpcReady(true);
            state = new QueryState(ClientState.forInternalCalls());
            statements = new Statements(state);
            FAILURES.start();
            Tools.neverExit();
            answer(answers, List.of());
            serve(answers);
        }
        catch (Throwable e)
        {
            fail(answers, e);
        }
        Tools.end(0);
    }

    private static void serve(PrintStream answers) throws Exception
    {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine())
        {
            String[] words = line.split("\t", -1);
            List<String> arguments = Arrays.stream(words).skip(1).map(Lab::unescape).collect(Collectors.toList());
            try
            {
                answer(answers, perform(words[0], arguments));
            }
            catch (Throwable e)
            {
                fail(answers, e);
            }
            if (words[0].equals("quit"))
                return;
        }
    }

    private static List<String> perform(String verb, List<String> a) throws Throwable
    {
        switch (verb)
        {
            case "schema": return schema(Files.readString(Path.of(a.get(0))));
            case "cql": return cql(a);
            case "run": return List.of(Long.toString(statements.run(a.get(0))));
            case "read": return List.of(Long.toString(statements.read(Long.parseLong(a.get(0)), a.get(1), a.get(2))));
            case "import": return importNew(store(a), a.get(2).equals("copy"), a.subList(3, a.size()));
            case "verify": return verify(store(a), a.subList(2, a.size()));
            case "select": return List.of(Long.toString(select(store(a).metadata(), Long.parseLong(a.get(2)), a.get(3))));
            case "extra": return cql(Samples.statements(store(a).metadata()));
            case "fill": return fill(store(a), a.subList(2, 5).stream().mapToInt(Integer::parseInt).toArray());
            case "flush": return List.of(Double.toString(flush(store(a))));
            case "peers": return peers(store(a), a.get(2), a.subList(3, a.size()));
            case "load": return load(store(a), Integer.parseInt(a.get(2)), Integer.parseInt(a.get(3)));
            case "compact": compact(store(a), a.size() > 2 ? a.get(2) : null); return List.of();
            case "truncate": store(a).truncateBlocking(); return List.of();
            case "refresh": StorageService.instance.loadNewSSTables(a.get(0), a.get(1)); return List.of();
            case "files": return files(store(a));
            case "snapshot": return snapshot(store(a), a.get(2));
            case "dump": Tools.run("org.apache.cassandra.tools.SSTableExport", a.get(1), a.get(0)); return List.of();
            case "quit": StorageService.instance.drain(); return List.of();
            default: throw new IllegalArgumentException("there is no verb " + verb);
        }
    }

    private static ColumnFamilyStore store(List<String> arguments)
    {
        String[] names = arguments.get(1).split("\\.", 2);
        ColumnFamilyStore table = Keyspace.open(arguments.get(0)).getColumnFamilyStore(names[0]);
        if (names.length == 1)
            return table;
        return table.indexManager.getIndexByName(names[1]).getBackingTable().get();
    }

    // ---- statements

    private static List<String> schema(String text)
    {
        List<AlterSchemaStatement> statements = new ArrayList<>();
        // These want their table to be open.
        List<String> later = new ArrayList<>();
        for (String statement : split(text))
        {
            CQLStatement parsed = QueryProcessor.getStatement(statement, state.getClientState());
            parsed.validate(state.getClientState());
            if (parsed instanceof CreateIndexStatement || parsed instanceof AlterTableStatement)
                later.add(statement);
            else
                statements.add((AlterSchemaStatement) parsed);
        }
        Lab.statements.forget();
        Schema.instance.transform(before -> {
            Keyspaces after = before;
            for (AlterSchemaStatement statement : statements)
                after = statement.apply(after);
            return after;
        });
        return cql(later);
    }

    /** At each semicolon that is not within quotes. */
    private static List<String> split(String text)
    {
        List<String> statements = new ArrayList<>();
        char quote = 0;
        int start = 0;
        for (int i = 0; i < text.length(); i++)
        {
            char c = text.charAt(i);
            if (quote != 0)
                quote = c == quote ? 0 : quote;
            else if (c == '\'' || c == '"')
                quote = c;
            else if (c == ';')
            {
                statements.add(text.substring(start, i).trim());
                start = i + 1;
            }
        }
        statements.add(text.substring(start).trim());
        statements.removeIf(String::isEmpty);
        return statements;
    }

    private static List<String> cql(List<String> statements)
    {
        for (String statement : statements)
        {
            try
            {
                QueryProcessor.process(statement, ConsistencyLevel.ONE, state, Dispatcher.RequestTime.forImmediateExecution());
            }
            catch (RuntimeException e)
            {
                throw new RuntimeException(statement.substring(0, Math.min(400, statement.length())), e);
            }
        }
        return List.of(Integer.toString(statements.size()));
    }

    private static List<String> fill(ColumnFamilyStore store, int[] shape)
    {
        WriteRows.fill(store.metadata().toString(), shape[0], shape[1], shape[2]);
        // What filling leaves behind is not to be collected while the flush is measured.
        System.gc();
        return List.of();
    }

    private static List<String> peers(ColumnFamilyStore store, String what, List<String> a) throws Exception
    {
        long[] numbers = a.stream().mapToLong(Long::parseLong).toArray();
        String table = store.metadata().toString();
        return PeerReads.run(table, what, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], (int) numbers[5], (int) numbers[6]);
    }

    private static List<String> load(ColumnFamilyStore store, int rows, int valueSize)
    {
        return List.of(Double.toString(PeerLoads.run(store, rows, valueSize)));
    }

    // ---- SSTables

    private static double flush(ColumnFamilyStore store)
    {
        long start = System.nanoTime();
        store.forceBlockingFlush(ColumnFamilyStore.FlushReason.USER_FORCED);
        return (System.nanoTime() - start) / 1e9;
    }

    private static void compact(ColumnFamilyStore store, String now)
    {
        if (now == null)
            store.forceMajorCompaction();
        else
            LabClock.at(Long.parseLong(now), store::forceMajorCompaction);
    }

    private static List<String> importNew(ColumnFamilyStore store, boolean copy, List<String> folders)
    {
        FAILURES.forget();
        Set<String> sources = new LinkedHashSet<>(folders);
        int before = store.getLiveSSTables().size();
        // In this order: reset level, clear repaired, verify SSTables, verify tokens, invalidate caches, extended
        // verify, copy, fail on a missing index, validate checksums of indexes.
        List<String> failed = store.importNewSSTables(sources, true, true, true, true, true, true, copy, false, true);
        if (!failed.isEmpty())
            throw new IllegalStateException(failed + " failed: " + FAILURES.all());
        return List.of(Integer.toString(store.getLiveSSTables().size() - before));
    }

    private static List<String> verify(ColumnFamilyStore store, List<String> files)
    {
        IVerifier.Options options = IVerifier.options().invokeDiskFailurePolicy(false).extendedVerification(true)
                                             .checkVersion(false).mutateRepairStatus(false).checkOwnsTokens(false)
                                             .tokenLookup(ignored -> Collections.emptyList()).build();
        for (String file : files)
        {
            Descriptor descriptor = descriptor(file);
            SSTableReader reader = SSTableReader.openNoValidation(descriptor, descriptor.discoverComponents(), store);
            try (IVerifier verifier = reader.getVerifier(store, new OutputHandler.LogOutput(), true, options))
            {
                verifier.verify();
            }
            finally
            {
                reader.selfRef().release();
            }
        }
        return List.of(Integer.toString(files.size()));
    }

    private static Descriptor descriptor(String file)
    {
        return Descriptor.fromFileWithComponent(new org.apache.cassandra.io.util.File(file), false).left;
    }

    private static List<String> files(ColumnFamilyStore store)
    {
        Set<String> files = new TreeSet<>();
        for (SSTableReader sstable : store.getSSTables(SSTableSet.CANONICAL))
            files.add(sstable.getFilename());
        return List.copyOf(files);
    }

    private static List<String> snapshot(ColumnFamilyStore store, String name)
    {
        List<String> folders = new ArrayList<>();
        store.snapshot(name).getDirectories().forEach(folder -> folders.add(folder.toString()));
        return folders;
    }

    // ---- rows

    private static long select(TableMetadata table, long now, String file) throws Exception
    {
        Selection selection = new Selection(table);
        CQLStatement statement = QueryProcessor.getStatement(selection.query, state.getClientState());
        long rows = 0;
        try (JsonGenerator json = new JsonFactory().createGenerator(new BufferedOutputStream(new FileOutputStream(file))))
        {
            json.setPrettyPrinter(new MinimalPrettyPrinter("\n"));
            PagingState page = null;
            do
            {
                QueryOptions options = QueryOptions.create(ConsistencyLevel.ONE, List.of(), false, PAGE, page, null,
                                                           ProtocolVersion.CURRENT, table.keyspace, Long.MIN_VALUE, now);
                ResultMessage.Rows result = (ResultMessage.Rows) QueryProcessor.instance.process(
                    statement, state, options, Dispatcher.RequestTime.forImmediateExecution());
                for (List<ByteBuffer> row : result.result.rows)
                    selection.write(json, row);
                rows += result.result.rows.size();
                page = result.result.metadata.getPagingState();
            }
            while (page != null);
            json.writeRaw('\n');
        }
        return rows;
    }

    /** What is selected of a table: its token, its columns, and when they were written and expire. */
    private static class Selection
    {
        final String query;
        private final List<String> columns = new ArrayList<>();
        /** Those that have a time, and whether it is a list of times. */
        private final List<ColumnMetadata> timed = new ArrayList<>();

        Selection(TableMetadata table)
        {
            List<String> keys = new ArrayList<>();
            table.partitionKeyColumns().forEach(column -> keys.add(column.name.toCQLString()));
            List<String> selected = new ArrayList<>();
            for (Iterator<ColumnMetadata> all = table.allColumnsInSelectOrder(); all.hasNext(); )
            {
                ColumnMetadata column = all.next();
                columns.add(column.name.toString());
                selected.add(column.name.toCQLString());
                if (!column.isPrimaryKeyColumn() && !column.type.isCounter())
                    timed.add(column);
            }
            timed.forEach(column -> selected.add("writetime(" + column.name.toCQLString() + ")"));
            timed.forEach(column -> selected.add("ttl(" + column.name.toCQLString() + ")"));
            query = "SELECT token(" + String.join(",", keys) + ")," + String.join(",", selected) + " FROM " + table;
        }

        /** {"token": 1, "raw": {column: hex}, "writetime": {column: number}, "ttl": {column: number}} */
        void write(JsonGenerator json, List<ByteBuffer> row) throws Exception
        {
            json.writeStartObject();
            json.writeNumberField("token", ByteBufferUtil.toLong(row.get(0)));
            json.writeObjectFieldStart("raw");
            for (int i = 0; i < columns.size(); i++)
            {
                json.writeFieldName(columns.get(i));
                writeRaw(json, row.get(1 + i));
            }
            json.writeEndObject();
            writeTimes(json, "writetime", row.subList(1 + columns.size(), row.size() - timed.size()));
            writeTimes(json, "ttl", row.subList(row.size() - timed.size(), row.size()));
            json.writeEndObject();
        }

        private void writeTimes(JsonGenerator json, String name, List<ByteBuffer> times) throws Exception
        {
            json.writeObjectFieldStart(name);
            for (int i = 0; i < timed.size(); i++)
            {
                if (times.get(i) == null)
                    continue;
                json.writeFieldName(timed.get(i).name.toString());
                if (times.get(i).remaining() == Long.BYTES)
                    json.writeNumber(ByteBufferUtil.toLong(times.get(i)));
                else if (times.get(i).remaining() == Integer.BYTES)
                    json.writeNumber(ByteBufferUtil.toInt(times.get(i)));
                else
                    writeRaw(json, times.get(i));
            }
            json.writeEndObject();
        }

        private static void writeRaw(JsonGenerator json, ByteBuffer value) throws Exception
        {
            if (value == null)
                json.writeNull();
            else if (value.remaining() <= LONGEST)
                json.writeString(ByteBufferUtil.bytesToHex(value));
            else
            {
                byte[] hash = MessageDigest.getInstance("SHA-256").digest(ByteBufferUtil.getArray(value));
                json.writeStartObject();
                json.writeNumberField("len", value.remaining());
                json.writeStringField("sha256", ByteBufferUtil.bytesToHex(ByteBuffer.wrap(hash)));
                json.writeEndObject();
            }
        }
    }

    // ---- the protocol

    private static void answer(PrintStream answers, List<String> values)
    {
        StringBuilder line = new StringBuilder("ok");
        values.forEach(value -> line.append('\t').append(escape(value)));
        answers.print(line.append('\n'));
        answers.flush();
    }

    private static void fail(PrintStream answers, Throwable e)
    {
        e.printStackTrace();
        Set<String> messages = new LinkedHashSet<>();
        for (Throwable cause = e; cause != null; cause = cause.getCause())
            messages.add(cause.toString());
        answers.print("error\t" + escape(String.join("; because of ", messages)) + '\n');
        answers.flush();
    }

    private static String escape(String value)
    {
        return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "");
    }

    private static String unescape(String value)
    {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < value.length(); i++)
        {
            char c = value.charAt(i);
            if (c == '\\' && ++i < value.length())
                c = value.charAt(i) == 't' ? '\t' : value.charAt(i) == 'n' ? '\n' : value.charAt(i);
            text.append(c);
        }
        return text.toString();
    }

    /** What Cassandra logs as errors of tables: an import tells its reasons nowhere else. */
    private static class Failures extends AppenderBase<ILoggingEvent>
    {
        private final List<String> said = Collections.synchronizedList(new ArrayList<>());

        @Override
        public void start()
        {
            super.start();
            ((Logger) LoggerFactory.getLogger(ColumnFamilyStore.class)).addAppender(this);
        }

        @Override
        protected void append(ILoggingEvent event)
        {
            if (!event.getLevel().isGreaterOrEqual(Level.ERROR))
                return;
            Set<String> messages = new LinkedHashSet<>();
            for (IThrowableProxy e = event.getThrowableProxy(); e != null; e = e.getCause())
                messages.add(e.getClassName() + ": " + e.getMessage());
            said.add(String.join("; because of ", messages));
        }

        void forget()
        {
            said.clear();
        }

        String all()
        {
            return String.join("\n", new ArrayList<>(said));
        }
    }
}
