//! Cassandra itself: brought by Maven; its tools without a node, and a [`Node`] that does what it is told.
//!
//! ```text
//! target/cassandra/5.0.5/pom.xml          names cassandra-all; Maven finds the rest
//!                       /lib/*.jar        what it found
//!                       /conf/            cassandra.yaml and logback.xml, the least that the tools ask for
//!                       /classes/         our drivers, compiled
//! ```

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::command::checked;

mod node;

pub use node::{Node, PeerPlan, PeerReads, TableName, Values, Work, Writes};

/// The version whose tools we compare with.
pub const VERSION: &str = "5.0.5";

/// What the tools print their rows with.
pub const SSTABLEDUMP: &str = "org.apache.cassandra.tools.SSTableExport";

/// Packages of the JDK that Cassandra uses although they are not exported.
const EXPORTS: [&str; 8] = [
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.rmi/sun.rmi.transport.tcp",
    "java.sql/java.sql",
];

/// Packages of the JDK whose private parts Cassandra looks at.
const OPENS: [&str; 15] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/sun.nio.ch",
];

/// The heap of each tool. Cassandra's own scripts give 256 MiB.
const HEAP: &str = "-Xmx1g";

/// Our drivers, below this crate.
const DRIVERS: [&str; 8] = [
    "java/Lab.java",
    "java/LabClock.java",
    "java/PeerLoads.java",
    "java/PeerReads.java",
    "java/Samples.java",
    "java/Statements.java",
    "java/Tools.java",
    "java/WriteRows.java",
];

const POM: &str = "\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>siltstone</groupId>
  <artifactId>cassandra-tools</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>@VERSION@</version>
    </dependency>
  </dependencies>
</project>
";

const YAML: &str = "\
cluster_name: siltstone
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
commitlog_sync: periodic
commitlog_sync_period: 10s
storage_compatibility_mode: NONE
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: 127.0.0.1
";

const LOGBACK: &str = "\
<configuration>
  <appender name=\"stderr\" class=\"ch.qos.logback.core.ConsoleAppender\">
    <target>System.err</target>
    <encoder><pattern>%-5level %msg%n</pattern></encoder>
  </appender>
  <root level=\"ERROR\"><appender-ref ref=\"stderr\"/></root>
</configuration>
";

/// Cassandra, ready to be started.
#[derive(Debug)]
pub struct Cassandra {
    /// Where it keeps what is not the project's.
    home: PathBuf,
    jars: PathBuf,
}

/// One run of a tool among [`Cassandra::tools`].
#[derive(Debug)]
pub struct Run {
    /// Its class, without the package of Cassandra's tools.
    pub tool: &'static str,
    /// The file that receives what it prints.
    pub output: PathBuf,
    /// What it is told.
    pub arguments: Vec<String>,
}

impl Cassandra {
    /// Brings Cassandra below the folder `builds`, or takes the jars of a folder that has them already.
    ///
    /// # Errors
    /// If there is no Java, or Maven cannot bring the jars.
    pub fn prepare(builds: &Path, jars: Option<&Path>) -> Result<Cassandra> {
        let home = builds.join("cassandra").join(VERSION);
        fs::create_dir_all(home.join("conf"))?;
        fs::write(home.join("conf/cassandra.yaml"), YAML)?;
        fs::write(home.join("conf/logback.xml"), LOGBACK)?;
        let jars = match jars {
            Some(jars) => jars.canonicalize().map_err(|error| format!("{}: {error}", jars.display()))?,
            None => bring_jars(&home)?,
        };
        Ok(Cassandra { home, jars })
    }

    /// A Java class with `main`, of Cassandra or of our drivers, that needs no node.
    ///
    /// # Errors
    /// If the jars are not all there.
    pub fn java(&self, class: &str) -> Result<Command> {
        let mut java = self.java_in(&self.home.join("conf"), &self.home.join("storage"))?;
        java.arg(HEAP).arg(class);
        Ok(java)
    }

    /// Java with all that Cassandra asks for; the heap, the class and its arguments are still to be said.
    fn java_in(&self, conf: &Path, storage: &Path) -> Result<Command> {
        let mut java = Command::new(java_tool("java"));
        java.arg(format!("-javaagent:{}", self.jar("jamm-")?.display()));
        for package in EXPORTS {
            java.arg(format!("--add-exports={package}=ALL-UNNAMED"));
        }
        for package in OPENS {
            java.arg(format!("--add-opens={package}=ALL-UNNAMED"));
        }
        java.args(["-Djava.security.manager=allow", "-Djdk.attach.allowAttachSelf=true"]);
        java.arg(format!("-Dcassandra.config=file:{}", conf.join("cassandra.yaml").display()));
        java.arg(format!("-Dcassandra.storagedir={}", storage.display()));
        java.arg(format!("-Dlogback.configurationFile={}", conf.join("logback.xml").display()));
        java.arg("-cp").arg(format!("{}:{}/*", self.classes().display(), self.jars.display()));
        Ok(java)
    }

    /// `sstabledump` of a file, in a Java of its own.
    ///
    /// # Errors
    /// If the jars are not all there.
    pub fn sstabledump(&self, data: &Path) -> Result<Command> {
        let mut java = self.java(SSTABLEDUMP)?;
        java.arg(data);
        Ok(java)
    }

    /// Runs command-line tools in one Java, with the configuration of a folder that a [`Node`] had or has.
    ///
    /// # Errors
    /// If one of them fails; the error has what each that failed said.
    pub fn tools(&self, folder: &Path, runs: &[Run]) -> Result<()> {
        self.compile_drivers()?;
        let mut list = String::new();
        for run in runs {
            write!(list, "org.apache.cassandra.tools.{}\t{}", run.tool, run.output.display())?;
            run.arguments.iter().try_for_each(|argument| write!(list, "\t{argument}"))?;
            list.push('\n');
        }
        let list_file = folder.join("tools");
        fs::write(&list_file, list)?;
        let mut java = self.java_in(&self.home.join("conf"), &folder.join("storage"))?;
        // The tools read the node's own cassandra.yaml, and keep a history where the user's home is.
        java.arg(format!("-Dcassandra.config=file:{}", folder.join("conf/cassandra.yaml").display()));
        java.arg(format!("-Duser.home={}", folder.display()));
        checked(java.arg(HEAP).arg("Tools").arg(list_file)).map(drop)
    }

    /// Writes rows with Cassandra's CQLSSTableWriter, several times: so many partitions of so many rows with values of
    /// so many bytes, in the order of the SSTable. Where it is not told that they are `sorted`, it sorts them itself.
    /// Prints the seconds of each round; the files of the last one stay.
    ///
    /// # Errors
    /// If the jars are not all there.
    pub fn write_rows(&self, folder: &Path, shape: [u32; 3], rounds: u32, sorted: bool) -> Result<Command> {
        self.compile_drivers()?;
        let mut java = self.java("WriteRows")?;
        java.arg(folder).args(shape.map(|number| number.to_string())).arg(rounds.to_string());
        java.arg(if sorted { "sorted" } else { "gathered" });
        Ok(java)
    }

    fn compile_drivers(&self) -> Result<()> {
        let mut javac = Command::new(java_tool("javac"));
        javac.args(["-nowarn", "-Xlint:-removal", "-Xlint:-deprecation", "-d"]).arg(self.classes());
        javac.arg("-cp").arg(format!("{}/*", self.jars.display()));
        javac.args(DRIVERS.map(|driver| Path::new(env!("CARGO_MANIFEST_DIR")).join(driver)));
        checked(&mut javac).map(drop)
    }

    fn classes(&self) -> PathBuf {
        self.home.join("classes")
    }

    fn jar(&self, prefix: &str) -> Result<PathBuf> {
        let names = fs::read_dir(&self.jars)?.filter_map(|entry| Some(entry.ok()?.path()));
        let mut jars = names.filter(|path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(prefix))
        });
        jars.next().ok_or_else(|| format!("there is no {prefix}*.jar in {}", self.jars.display()).into())
    }
}

fn java_tool(name: &str) -> PathBuf {
    env::var_os("JAVA_HOME").map_or_else(|| name.into(), |home| Path::new(&home).join("bin").join(name))
}

fn bring_jars(home: &Path) -> Result<PathBuf> {
    let (jars, complete) = (home.join("lib"), home.join("lib.complete"));
    if complete.exists() {
        return Ok(jars);
    }
    fs::write(home.join("pom.xml"), POM.replace("@VERSION@", VERSION))?;
    let mut maven = Command::new("mvn");
    maven.current_dir(home).args([
        "--quiet",
        "--batch-mode",
        "-Dstyle.color=never",
        "-DincludeScope=runtime",
    ]);
    maven.arg("dependency:copy-dependencies").arg(format!("-DoutputDirectory={}", jars.display()));
    checked(&mut maven)?;
    fs::write(complete, "")?;
    Ok(jars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_jars_there_is_no_tool() {
        let folder = tempfile::tempdir().unwrap();
        let cassandra = Cassandra { home: folder.path().to_owned(), jars: folder.path().to_owned() };
        assert!(cassandra.java(SSTABLEDUMP).unwrap_err().to_string().contains("jamm-"));
        fs::write(folder.path().join("jamm-1.jar"), "").unwrap();
        let dump = cassandra.sstabledump(Path::new("x-Data.db")).unwrap();
        let arguments: Vec<_> = dump.get_args().collect();
        assert_eq!(arguments[arguments.len() - 2..], [SSTABLEDUMP, "x-Data.db"]);
    }
}
