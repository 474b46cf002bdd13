// Works out the last column of golden.tsv with Cassandra itself (5.0.5, on Java 17):
//
//     java -cp "$CASSANDRA_HOME/lib/*" Oracle.java < golden.tsv | grep -P '\t' > new.tsv
//
// Every line is an operation, its arguments and its result; ERR is an exception. Only values that Cassandra
// accepts are asked for their JSON, text and order, as the answers of exceptions are nobody's wish.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.db.marshal.TypeParser;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.utils.ByteBufferUtil;

public class Oracle
{
    public static void main(String[] args) throws Exception
    {
        DatabaseDescriptor.clientInitialization();
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine())
        {
            String[] columns = line.split("\t", -1);
            String[] asked = line.startsWith("#") ? columns : Arrays.copyOf(columns, columns.length - 1);
            out.println(line.startsWith("#") ? line : String.join("\t", asked) + "\t" + answer(asked));
        }
        out.flush();
        System.exit(0);
    }

    private static String answer(String[] asked)
    {
        try
        {
            switch (asked[0])
            {
                case "double": return Double.toString(Double.longBitsToDouble(Long.parseUnsignedLong(asked[1], 16)));
                case "float": return Float.toString(Float.intBitsToFloat(Integer.parseUnsignedInt(asked[1], 16)));
                case "micros": return date(TimeUnit.MICROSECONDS, Long.parseLong(asked[1]));
                case "seconds": return date(TimeUnit.SECONDS, Long.parseLong(asked[1]));
                default: return answer(asked, TypeParser.parse(asked[1]));
            }
        }
        catch (Throwable e)
        {
            return "ERR";
        }
    }

    private static String answer(String[] asked, AbstractType<?> type)
    {
        switch (asked[0])
        {
            case "name":
                return String.join(" ", type.toString(), type.asCQL3Type().toString(), "" + type.isMultiCell(),
                                   "" + type.valueLengthIfFixed(), "" + type.allowsEmpty());
            case "json": return type.toJSONString(bytes(asked[2]), ProtocolVersion.CURRENT);
            case "text": return type.getString(bytes(asked[2]));
            case "read": return ByteBufferUtil.bytesToHex(type.fromString(asked[2]));
            case "order": return "" + Integer.signum(type.compare(bytes(asked[2]), bytes(asked[3])));
            case "valid": type.validate(bytes(asked[2])); return "yes";
            default: throw new IllegalArgumentException(asked[0]);
        }
    }

    // As sstabledump prints times.
    private static String date(TimeUnit unit, long time)
    {
        return Instant.ofEpochSecond(unit.toSeconds(time), Math.floorMod(unit.toNanos(time), 1_000_000_000L)).toString();
    }

    private static ByteBuffer bytes(String hex)
    {
        return ByteBufferUtil.hexToBytes(hex);
    }
}
