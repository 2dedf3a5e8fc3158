package redissonpeer;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A program that takes Redisson's locks as stdin tells it. The README has its options and commands. */
public final class Main {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] args) throws IOException {
        Commands commands = new Commands(Options.parse(args));
        Map<String, ExecutorService> threads = new HashMap<>();
        print("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null && !line.equals("exit"); line = in.readLine()) {
            String[] words = line.trim().split("\\s+");
            if (words.length >= 2) {
                threads.computeIfAbsent(words[0], Main::newThread).execute(() -> carryOut(commands, words));
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static ExecutorService newThread(String name) {
        return Executors.newSingleThreadExecutor(task -> new Thread(task, name));
    }

    private static void carryOut(Commands commands, String[] words) {
        String answer;
        try {
            answer = "ok " + commands.run(words);
        } catch (Throwable e) {
            answer = "error " + e.toString().replaceAll("\\s+", " ");
        }
        print(words[0] + " " + ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()) + " " + answer.trim());
    }

    private static void print(String line) {
        synchronized (OUT) {
            OUT.println(line);
            OUT.flush();
        }
    }

    private Main() {}
}
