import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * What Kafka's SslPrincipalMapper makes of names: rules and a name per line of a file, a result per
 * line of another one.
 *
 * All are Base64 of UTF-8, separated by a tab. A result is '+' and the name, '-' if no rule matches,
 * or '!' if the rules or a replacement are refused.
 */
public final class JavaPrincipals {
    public static void main(String[] arguments) throws Exception {
        List<String> results = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] halves = line.split("\t", -1);
            results.add(map(decoded(halves[0]), decoded(halves[1])));
        }
        Files.write(Path.of(arguments[1]), results);
    }

    private static String map(String rules, String name) {
        try {
            String mapped = SslPrincipalMapper.fromRules(rules).getName(name);
            byte[] bytes = mapped.getBytes(StandardCharsets.UTF_8);
            return "+" + Base64.getEncoder().encodeToString(bytes);
        } catch (IOException none) {
            return "-";
        } catch (RuntimeException refused) {
            return "!";
        }
    }

    private static String decoded(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }
}
