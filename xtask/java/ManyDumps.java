// Runs one of Cassandra's tools on many files in one Java, so that its start is paid once:
//
//     java -Djava.security.manager=allow -cp … ManyDumps CLASS LIST
//
// Each line of LIST names an SSTable and, after a tab, the file for what the tool prints. A tool that fails leaves
// what it printed up to then; whoever asked finds that this is no whole JSON.

import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Permission;

public class ManyDumps
{
    /** Thrown where a tool wants to end all of Java. */
    static class Exit extends SecurityException
    {
    }

    public static void main(String[] args) throws Exception
    {
        Method tool = Class.forName(args[0]).getMethod("main", String[].class);
        PrintStream stdout = System.out;
        System.setSecurityManager(new NoExit());
        for (String line : Files.readAllLines(Path.of(args[1])))
        {
            String[] parts = line.split("\t");
            try (PrintStream file = open(parts[1]))
            {
                System.setOut(file);
                run(tool, parts[0]);
            }
            System.setOut(stdout);
        }
        System.setSecurityManager(null);
        // Threads of Cassandra may still be running.
        Runtime.getRuntime().halt(0);
    }

    private static PrintStream open(String path) throws Exception
    {
        return new PrintStream(new BufferedOutputStream(new FileOutputStream(path), 1 << 16), false, StandardCharsets.UTF_8);
    }

    private static void run(Method tool, String sstable) throws IllegalAccessException
    {
        try
        {
            tool.invoke(null, (Object) new String[]{ sstable });
        }
        catch (InvocationTargetException e)
        {
            if (!(e.getCause() instanceof Exit))
                System.err.println(sstable + ": " + e.getCause());
        }
    }

    private static class NoExit extends SecurityManager
    {
        @Override
        public void checkExit(int status)
        {
            throw new Exit();
        }

        @Override
        public void checkPermission(Permission permission)
        {
        }

        @Override
        public void checkPermission(Permission permission, Object context)
        {
        }
    }
}
