// Rows of made-up values for any table, as CQL.

import java.util.ArrayList;
import java.util.List;

import org.apache.cassandra.cql3.FieldIdentifier;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.db.marshal.ListType;
import org.apache.cassandra.db.marshal.MapType;
import org.apache.cassandra.db.marshal.SetType;
import org.apache.cassandra.db.marshal.TupleType;
import org.apache.cassandra.db.marshal.UserType;
import org.apache.cassandra.db.marshal.VectorType;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;

class Samples
{
    /** Later than any other write, and not later than what Cassandra's clock would give. */
    private static final long TIMESTAMP = 1_750_000_000_000_000L;

    /** Two rows: one as large as it gets, and one with as little as it can have. */
    static List<String> statements(TableMetadata table)
    {
        return List.of(statement(table, 0), statement(table, 1));
    }

    private static String statement(TableMetadata table, int number)
    {
        List<ColumnMetadata> values = values(table, number);
        return table.isCounter() ? update(table, number, values) : insert(table, number, values);
    }

    private static List<ColumnMetadata> values(TableMetadata table, int number)
    {
        List<ColumnMetadata> values = new ArrayList<>();
        // A counter cannot be written without a value: where all are static, every row has them.
        boolean withStatics = number == 0 || table.regularColumns().isEmpty();
        // Those of dense tables have one value, which may have no name.
        table.regularAndStaticColumns().selectOrderIterator().forEachRemaining(column -> {
            boolean isShown = !column.name.toString().isEmpty() && (!column.isStatic() || table.isStaticCompactTable() || withStatics);
            if (isShown)
                values.add(column);
        });
        boolean isCompact = table.isCompactTable();
        if (table.isStaticCompactTable())
            values.removeIf(column -> !column.isStatic());
        return isCompact || table.isCounter() ? values : values.subList(0, number == 0 ? values.size() : Math.min(1, values.size()));
    }

    private static List<ColumnMetadata> keys(TableMetadata table)
    {
        List<ColumnMetadata> keys = new ArrayList<>();
        table.partitionKeyColumns().forEach(keys::add);
        if (!table.isStaticCompactTable())
            table.clusteringColumns().forEach(keys::add);
        return keys;
    }

    private static String insert(TableMetadata table, int number, List<ColumnMetadata> values)
    {
        List<String> names = new ArrayList<>();
        List<String> literals = new ArrayList<>();
        List<ColumnMetadata> columns = keys(table);
        columns.addAll(values);
        for (ColumnMetadata column : columns)
        {
            names.add(column.name.toCQLString());
            literals.add(literal(column.type.unwrap(), number));
        }
        return "INSERT INTO " + table + " (" + String.join(", ", names) + ") VALUES (" + String.join(", ", literals)
               + ") USING TIMESTAMP " + (TIMESTAMP + number) + " AND TTL 0";
    }

    private static String update(TableMetadata table, int number, List<ColumnMetadata> values)
    {
        List<String> sums = new ArrayList<>();
        for (ColumnMetadata column : values)
            sums.add(column.name.toCQLString() + " = " + column.name.toCQLString() + " + " + (number + 7));
        List<String> conditions = new ArrayList<>();
        boolean isOfPartition = values.stream().allMatch(ColumnMetadata::isStatic);
        for (ColumnMetadata column : isOfPartition ? table.partitionKeyColumns() : keys(table))
            conditions.add(column.name.toCQLString() + " = " + literal(column.type.unwrap(), number));
        return "UPDATE " + table + " SET " + String.join(", ", sums) + " WHERE " + String.join(" AND ", conditions);
    }

    private static String literal(AbstractType<?> type, int number)
    {
        if (type instanceof ListType)
            return "[" + literal(((ListType<?>) type).getElementsType().unwrap(), number) + "]";
        if (type instanceof SetType)
            return "{" + literal(((SetType<?>) type).getElementsType().unwrap(), number) + "}";
        if (type instanceof MapType)
            return "{" + literal(((MapType<?, ?>) type).getKeysType().unwrap(), number) + ": "
                   + literal(((MapType<?, ?>) type).getValuesType().unwrap(), number) + "}";
        if (type instanceof UserType)
            return userType((UserType) type, number);
        if (type instanceof VectorType)
            return vector((VectorType<?>) type, number);
        if (type instanceof TupleType)
            return tuple((TupleType) type, number);
        return simple(type.asCQL3Type().toString(), number);
    }

    private static String userType(UserType type, int number)
    {
        List<String> fields = new ArrayList<>();
        for (int i = 0; i < type.size(); i++)
        {
            FieldIdentifier name = type.fieldName(i);
            fields.add("\"" + name.toString().replace("\"", "\"\"") + "\": " + literal(type.fieldType(i).unwrap(), number));
        }
        return "{" + String.join(", ", fields) + "}";
    }

    private static String tuple(TupleType type, int number)
    {
        List<String> items = new ArrayList<>();
        for (AbstractType<?> item : type.allTypes())
            items.add(literal(item.unwrap(), number));
        return "(" + String.join(", ", items) + ")";
    }

    private static String vector(VectorType<?> type, int number)
    {
        List<String> items = new ArrayList<>();
        for (int i = 0; i < type.dimension; i++)
            items.add(literal(type.getElementsType().unwrap(), number));
        return "[" + String.join(", ", items) + "]";
    }

    private static String simple(String type, int number)
    {
        switch (type)
        {
            case "ascii":
            case "text":
            case "varchar": return "'extra " + number + "'";
            case "blob": return "0xe47a0" + number;
            case "boolean": return number == 0 ? "true" : "false";
            case "date": return "'2020-02-0" + (number + 1) + "'";
            case "decimal": return "4242.4" + number;
            case "double":
            case "float": return "4242.5" + number;
            case "duration": return "4h2m" + number + "s";
            case "inet": return "'10.42.42." + number + "'";
            case "time": return "'04:02:0" + number + "'";
            case "timestamp": return "158042420000" + number;
            case "timeuuid":
            case "uuid": return "50554d6e-29bb-11e5-b345-4242424242" + "4" + number;
            case "tinyint": return "4" + number;
            case "bigint":
            case "int":
            case "smallint":
            case "varint": return "424" + number;
            default: throw new IllegalArgumentException("no sample of " + type);
        }
    }
}
