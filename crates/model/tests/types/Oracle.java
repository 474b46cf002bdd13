// Works out the last column of golden.tsv anew with Cassandra itself (5.0.5, on Java 17):
//
//     java -cp "$CASSANDRA_HOME/lib/*" Oracle.java golden.tsv
//
// Every line is an operation, its arguments and its result; ERR is an exception. Only values that Cassandra
// accepts are asked for their JSON, text and order: where it throws, this project need not.

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
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
        List<String> lines = new ArrayList<>();
        for (String line : Files.readString(Path.of(args[0])).split("\n"))
        {
            String[] columns = line.split("\t", -1);
            String[] asked = Arrays.copyOf(columns, columns.length - 1);
            lines.add(line.startsWith("#") ? line : String.join("\t", asked) + "\t" + answer(asked));
        }
        Files.writeString(Path.of(args[0]), String.join("\n", lines) + "\n");
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
