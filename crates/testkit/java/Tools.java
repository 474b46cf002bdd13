// Runs Cassandra's command-line tools in one Java, so that its start is paid once:
//
//     java -Djava.security.manager=allow -cp … Tools LIST
//
// Each line of LIST is the class of a tool, a tab, the file for what it prints, and its arguments after tabs. A tool that
// fails is named on stderr with what it said, and Tools then ends with 1.

import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Permission;
import java.util.Arrays;

public class Tools
{
    /** Thrown where a tool wants to end all of Java. */
    static class Exit extends SecurityException
    {
        final int status;

        Exit(int status)
        {
            this.status = status;
        }
    }

    public static void main(String[] args) throws Exception
    {
        neverExit();
        int failed = 0;
        for (String line : Files.readAllLines(Path.of(args[0])))
        {
            String[] words = line.split("\t");
            try
            {
                run(words[0], words[1], Arrays.copyOfRange(words, 2, words.length));
            }
            catch (Exception e)
            {
                System.err.println(line + ": " + e.getMessage());
                failed++;
            }
        }
        end(failed == 0 ? 0 : 1);
    }

    /** Has a tool print to a file, and throws what it says if it fails. */
    static void run(String tool, String output, String... arguments) throws Exception
    {
        PrintStream stdout = System.out;
        PrintStream stderr = System.err;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        Throwable failure;
        try (PrintStream file = open(output))
        {
            System.setOut(file);
            System.setErr(new PrintStream(said, true, StandardCharsets.UTF_8));
            failure = failure(tool, arguments);
        }
        finally
        {
            System.setOut(stdout);
            System.setErr(stderr);
        }
        if (failure != null)
            throw new IllegalStateException(failure + "\n" + said.toString(StandardCharsets.UTF_8), failure);
    }

    private static Throwable failure(String tool, String[] arguments) throws ReflectiveOperationException
    {
        try
        {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return null;
        }
        catch (InvocationTargetException e)
        {
            Throwable cause = e.getCause();
            if (!(cause instanceof Exit))
                return cause;
            int status = ((Exit) cause).status;
            return status == 0 ? null : new IllegalStateException("ended with " + status);
        }
    }

    private static PrintStream open(String path) throws Exception
    {
        return new PrintStream(new BufferedOutputStream(new FileOutputStream(path), 1 << 16), false, StandardCharsets.UTF_8);
    }

    static void neverExit()
    {
        System.setSecurityManager(new NoExit());
    }

    /** Threads of Cassandra may still be running. */
    static void end(int status)
    {
        System.setSecurityManager(null);
        Runtime.getRuntime().halt(status);
    }

    private static class NoExit extends SecurityManager
    {
        @Override
        public void checkExit(int status)
        {
            throw new Exit(status);
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
