//! Cassandra's offline tools: brought by Maven, started without a node.
//!
//! ```text
//! target/cassandra/5.0.5/pom.xml          names cassandra-all; Maven finds the rest
//!                       /lib/*.jar        what it found
//!                       /conf/            cassandra.yaml and logback.xml, the least that the tools ask for
//!                       /classes/         our driver, compiled
//! ```

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::measure::checked;
use crate::workspace::{root, target};

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

/// Cassandra's offline tools, ready to be started.
#[derive(Debug)]
pub struct Cassandra {
    /// Where it keeps what is not the project's.
    home: PathBuf,
    jars: PathBuf,
}

impl Cassandra {
    /// Brings the tools, or takes the jars of a folder that has them already.
    ///
    /// # Errors
    /// If there is no Java, or Maven cannot bring the jars.
    pub fn prepare(jars: Option<&Path>) -> Result<Cassandra> {
        let home = target().join("cassandra").join(VERSION);
        fs::create_dir_all(home.join("conf"))?;
        fs::write(home.join("conf/cassandra.yaml"), YAML)?;
        fs::write(home.join("conf/logback.xml"), LOGBACK)?;
        let jars = match jars {
            Some(jars) => jars.canonicalize().map_err(|error| format!("{}: {error}", jars.display()))?,
            None => bring_jars(&home)?,
        };
        Ok(Cassandra { home, jars })
    }

    /// A Java class with `main`, of Cassandra or of our driver.
    ///
    /// # Errors
    /// If the jars are not all there.
    pub fn java(&self, class: &str) -> Result<Command> {
        let mut java = Command::new(java_tool("java"));
        java.arg(HEAP).arg(format!("-javaagent:{}", self.jar("jamm-")?.display()));
        for package in EXPORTS {
            java.arg(format!("--add-exports={package}=ALL-UNNAMED"));
        }
        for package in OPENS {
            java.arg(format!("--add-opens={package}=ALL-UNNAMED"));
        }
        let conf = self.home.join("conf");
        java.args(["-Djava.security.manager=allow", "-Djdk.attach.allowAttachSelf=true"]);
        java.arg(format!("-Dcassandra.config=file:{}", conf.join("cassandra.yaml").display()));
        java.arg(format!("-Dcassandra.storagedir={}", self.home.join("storage").display()));
        java.arg(format!("-Dlogback.configurationFile={}", conf.join("logback.xml").display()));
        java.arg("-cp").arg(format!("{}:{}/*", self.classes().display(), self.jars.display()));
        java.arg(class);
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

    /// Our driver, compiled: many dumps in one Java. Its argument is a file with a line for each dump, which has the
    /// SSTable, a tab and the file to write.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn many_dumps(&self, list: &Path) -> Result<Command> {
        let mut javac = Command::new(java_tool("javac"));
        javac.args(["-nowarn", "-Xlint:-removal", "-d"]).arg(self.classes());
        javac.arg(root().join("xtask/java/ManyDumps.java"));
        checked(&mut javac)?;
        let mut java = self.java("ManyDumps")?;
        java.arg(SSTABLEDUMP).arg(list);
        Ok(java)
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
