// HDFS with two name nodes and two data nodes in one process, for hdfs_slow_test.py: prints the name nodes' HTTP addresses, and
// for each line "failover" that it reads makes the other name node the active one after the active one has ended.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;
import org.apache.hadoop.hdfs.server.namenode.ha.HATestUtil;

public class MiniHdfs {
  public static void main(String[] arguments) throws Exception {
    Configuration conf = new Configuration();
    conf.set("hdfs.minidfs.basedir", arguments[0]);
    conf.set("dfs.blocksize", "1048576");
    conf.set("dfs.ha.tail-edits.period", "1");
    MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).nnTopology(MiniDFSNNTopology.simpleHATopology()).numDataNodes(2).build();
    cluster.waitActive();
    cluster.transitionToActive(0);
    FileSystem files = HATestUtil.configureFailoverFs(cluster, conf);
    for (String[] folder : new String[][] {{"/data", "777"}, {"/closed", "700"}}) {
      files.mkdirs(new Path(folder[0]));
      files.setPermission(new Path(folder[0]), new FsPermission(folder[1]));
    }
    System.out.println("READY " + cluster.getHttpUri(0) + " " + cluster.getHttpUri(1));
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    while (commands.readLine() != null) {
      cluster.shutdownNameNode(0);
      cluster.transitionToActive(1);
      System.out.println("DONE");
    }
    cluster.shutdown();
  }
}
