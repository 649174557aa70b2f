import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * What Kafka's assignors assign: one group per line of a file, one line of results per group.
 *
 * A group is its topics and its members, as tests/support/assigned_by_java.py describes them. The
 * results are tab-separated: the assignments of range, roundrobin, sticky and cooperative-sticky,
 * and the rounds that the last took to settle. An assignment has a letter per partition, in order:
 * 'a' for the first member, and '.' for no member.
 */
public final class JavaAssignors {
    private static final int ROUNDS_MAX = 8;

    private record Member(
        String id,
        Optional<String> instance,
        Optional<String> rack,
        List<String> topics,
        List<TopicPartition> owned,
        int generation
    ) {}

    public static void main(String[] arguments) throws Exception {
        List<String> results = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] halves = line.split("\\|", -1);
            List<TopicPartition> partitions = new ArrayList<>();
            Cluster cluster = cluster(halves[0], partitions);
            List<Member> members = new ArrayList<>();
            for (String text : halves[1].split(" ")) {
                members.add(member(text));
            }
            results.add(String.join("\t", assignAll(cluster, partitions, members)));
        }
        Files.write(Path.of(arguments[1]), results);
    }

    private static List<String> assignAll(
        Cluster cluster, List<TopicPartition> partitions, List<Member> members
    ) {
        List<String> found = new ArrayList<>();
        for (ConsumerPartitionAssignor assignor
            : List.of(new RangeAssignor(), new RoundRobinAssignor(), new StickyAssignor())) {
            found.add(text(assign(assignor, cluster, members), partitions, members));
        }
        List<Member> before = members;
        Map<String, List<TopicPartition>> assigned = Map.of();
        int rounds = 0;
        boolean isRevoking = true;
        while (isRevoking && rounds < ROUNDS_MAX) {
            rounds++;
            assigned = assign(new CooperativeStickyAssignor(), cluster, before);
            isRevoking = false;
            List<Member> after = new ArrayList<>();
            for (Member each : before) {
                List<TopicPartition> given = assigned.get(each.id);
                isRevoking |= !given.containsAll(each.owned);
                after.add(new Member(
                    each.id, each.instance, each.rack, each.topics, given, 1000 + rounds));
            }
            before = after;
        }
        found.add(text(assigned, partitions, members));
        found.add(isRevoking ? "-" : String.valueOf(rounds));
        return found;
    }

    private static Map<String, List<TopicPartition>> assign(
        ConsumerPartitionAssignor assignor, Cluster cluster, List<Member> members
    ) {
        Map<String, Subscription> subscriptions = new LinkedHashMap<>();
        for (Member member : members) {
            List<TopicPartition> owned = member.owned;
            ByteBuffer userData = null;
            if (assignor instanceof StickyAssignor) {
                userData = stickyUserData(member);
                owned = List.of();
            }
            Subscription subscription =
                new Subscription(member.topics, userData, owned, member.generation, member.rack);
            subscription.setGroupInstanceId(member.instance);
            subscriptions.put(member.id, subscription);
        }
        Map<String, List<TopicPartition>> found = new HashMap<>();
        assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment()
            .forEach((id, assignment) -> found.put(id, assignment.partitions()));
        return found;
    }

    @SuppressWarnings("removal") // There is no other way to make the metadata.
    private static ByteBuffer stickyUserData(Member member) {
        StickyAssignor assignor = new StickyAssignor();
        if (member.generation >= 0) {
            assignor.onAssignment(
                new Assignment(member.owned),
                new ConsumerGroupMetadata("g", member.generation, member.id, member.instance));
        }
        return assignor.subscriptionUserData(Set.copyOf(member.topics));
    }

    private static String text(
        Map<String, List<TopicPartition>> assigned,
        List<TopicPartition> partitions,
        List<Member> members
    ) {
        Map<TopicPartition, Character> letters = new HashMap<>();
        char letter = 'a';
        for (Member member : members) {
            for (TopicPartition each : assigned.get(member.id)) {
                letters.put(each, letter);
            }
            letter++;
        }
        StringBuilder found = new StringBuilder();
        for (TopicPartition each : partitions) {
            found.append(letters.getOrDefault(each, '.'));
        }
        return found.toString();
    }

    private static Cluster cluster(String text, List<TopicPartition> partitions) {
        Map<Character, Node> nodes = new HashMap<>();
        Node elsewhere = new Node(0, "host", 9092);
        List<PartitionInfo> infos = new ArrayList<>();
        for (String topic : text.split(" ")) {
            String[] parts = topic.split(":", -1);
            String[] racks = parts[1].split(",", -1);
            for (int number = 0; number < racks.length; number++) {
                List<Node> replicas = new ArrayList<>();
                for (char rack : racks[number].toCharArray()) {
                    replicas.add(nodes.computeIfAbsent(
                        rack, r -> new Node(r, "host", 9092, String.valueOf(r))));
                }
                if (replicas.isEmpty()) {
                    replicas.add(elsewhere);
                }
                Node[] all = replicas.toArray(new Node[0]);
                infos.add(new PartitionInfo(parts[0], number, all[0], all, all));
                partitions.add(new TopicPartition(parts[0], number));
            }
        }
        Set<Node> all = new HashSet<>(nodes.values());
        all.add(elsewhere);
        return new Cluster("cluster", all, infos, Set.of(), Set.of());
    }

    private static Member member(String text) {
        String[] fields = text.split("/", -1);
        List<TopicPartition> owned = new ArrayList<>();
        for (String name : words(fields[4])) {
            int dash = name.lastIndexOf('-');
            owned.add(new TopicPartition(
                name.substring(0, dash), Integer.parseInt(name.substring(dash + 1))));
        }
        return new Member(
            fields[0],
            given(fields[1]),
            given(fields[2]),
            words(fields[3]),
            owned,
            Integer.parseInt(fields[5]));
    }

    private static List<String> words(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(","));
    }

    private static Optional<String> given(String text) {
        return text.isEmpty() ? Optional.empty() : Optional.of(text);
    }
}
