/* One librdkafka client at full speed; prints one line of JSON.
 *
 *   librdkafka LIBRARY produce BOOTSTRAP TOPIC BYTES COUNT [KEY=VALUE]...
 *   librdkafka LIBRARY consume BOOTSTRAP TOPIC BYTES COUNT [KEY=VALUE]...
 *   librdkafka LIBRARY latency BOOTSTRAP TOPIC BYTES SECONDS [KEY=VALUE]...
 *
 * LIBRARY is the librdkafka that confluent-kafka brings along, so no headers are there to include:
 * what is used of its stable interface is declared here. Partition 0 only. Every record is checked:
 * delivered without error, consumed in offset order with the right size.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PRODUCER, CONSUMER };            /* rd_kafka_type_t */
enum { QUEUE_FULL = -184, EOF_ = -191 }; /* rd_kafka_resp_err_t */
enum { MSG_F_BLOCK = 4, BEGINNING = -2 };
enum { SAMPLES_MAX = 4 << 20 };

typedef struct {
    int err;
    void *topic;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *private;
} message;

static void *(*conf_new)(void);
static int (*conf_set)(void *, const char *, const char *, char *, size_t);
static void (*conf_set_dr_msg_cb)(void *, void (*)(void *, const message *, void *));
static void *(*new)(int, void *, char *, size_t);
static void *(*topic_new)(void *, const char *, void *);
static int (*produce)(void *, int32_t, int, void *, size_t, const void *, size_t, void *);
static int (*poll)(void *, int);
static int (*flush)(void *, int);
static int (*last_error)(void);
static const char *(*err2str)(int);
static int (*consume_start)(void *, int32_t, int64_t);
static int (*consume_callback)(void *, int32_t, int, void (*)(message *, void *), void *);

static int64_t delivered, expected_offset, wanted;
static size_t size;
static double first_at;

static void fail(const char *what, int err) {
    fprintf(stderr, "librdkafka: %s: %s\n", what, err ? err2str(err) : "");
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *named(void *library, const char *name) {
    void *address = dlsym(library, name);
    if (!address) fprintf(stderr, "librdkafka: no %s in the library\n", name), exit(1);
    return address;
}

static void load_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) fprintf(stderr, "librdkafka: %s\n", dlerror()), exit(1);
    conf_new = named(library, "rd_kafka_conf_new");
    conf_set = named(library, "rd_kafka_conf_set");
    conf_set_dr_msg_cb = named(library, "rd_kafka_conf_set_dr_msg_cb");
    new = named(library, "rd_kafka_new");
    topic_new = named(library, "rd_kafka_topic_new");
    produce = named(library, "rd_kafka_produce");
    poll = named(library, "rd_kafka_poll");
    flush = named(library, "rd_kafka_flush");
    last_error = named(library, "rd_kafka_last_error");
    err2str = named(library, "rd_kafka_err2str");
    consume_start = named(library, "rd_kafka_consume_start");
    consume_callback = named(library, "rd_kafka_consume_callback");
}

static void set(void *conf, const char *key, const char *value) {
    char text[512];
    if (conf_set(conf, key, value, text, sizeof text)) fprintf(stderr, "%s\n", text), exit(1);
}

static void on_delivery(void *client, const message *m, void *opaque) {
    (void)client, (void)opaque;
    if (m->err) fail("a record was not delivered", m->err);
    delivered++;
}

static void on_message(message *m, void *opaque) {
    (void)opaque;
    if (m->err == EOF_ || expected_offset == wanted) return;
    if (m->err) fail("consuming", m->err);
    if (m->offset != expected_offset || m->len != size) fail("another record than expected", 0);
    if (!expected_offset++) first_at = now();
}

static void send_one(void *client, void *topic, void *payload) {
    while (produce(topic, 0, 0, payload, size, NULL, 0, NULL)) {
        if (last_error() != QUEUE_FULL) fail("producing", last_error());
        poll(client, 10);
    }
}

static void deliver(void *client, int64_t count) {
    while (delivered < count)
        if (!poll(client, 10000)) fail("no delivery report for ten seconds", 0);
}

static void run_produce(void *client, void *topic, void *payload, int64_t count) {
    send_one(client, topic, payload); /* connects and learns the leader */
    deliver(client, 1);
    double begin = now();
    for (int64_t i = 1; i < count; i++) {
        send_one(client, topic, payload);
        if (i % 1000 == 0) poll(client, 0);
    }
    deliver(client, count);
    double seconds = now() - begin;
    printf("{\"records\": %.1f, \"megabytes\": %.3f}\n", (double)(count - 1) / seconds,
           (double)(count - 1) * (double)size / seconds / 1e6);
}

static void run_consume(void *topic, int64_t count) {
    wanted = count;
    if (consume_start(topic, 0, BEGINNING)) fail("starting", last_error());
    while (expected_offset < wanted) {
        int n = consume_callback(topic, 0, 10000, on_message, NULL);
        if (n < 0) fail("consuming", last_error());
        if (n == 0) fail("no record for ten seconds", 0);
    }
    double seconds = now() - first_at;
    printf("{\"records\": %.1f, \"megabytes\": %.3f}\n", (double)(count - 1) / seconds,
           (double)(count - 1) * (double)size / seconds / 1e6);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_latency(void *client, void *topic, void *payload, double seconds) {
    double *samples = malloc(SAMPLES_MAX * sizeof *samples);
    size_t count = 0;
    for (int64_t i = 1; i <= 20; i++) { /* warms up */
        send_one(client, topic, payload);
        deliver(client, i);
    }
    double begin = now(), sent = begin;
    while (sent - begin < seconds && count < SAMPLES_MAX) {
        send_one(client, topic, payload);
        deliver(client, delivered + 1);
        double answered = now();
        samples[count++] = (answered - sent) * 1e6;
        sent = answered;
    }
    qsort(samples, count, sizeof *samples, by_size);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f, \"rate\": %.1f}\n", samples[count / 2],
           samples[count * 99 / 100], (double)count / (sent - begin));
}

int main(int argc, char **argv) {
    if (argc < 7) return fprintf(stderr, "usage: see the head of librdkafka.c\n"), 2;
    const char *mode = argv[2];
    int consumes = !strcmp(mode, "consume");
    load_library(argv[1]);
    void *conf = conf_new();
    set(conf, "bootstrap.servers", argv[3]);
    set(conf, "log_level", "3");
    set(conf, "enable.metrics.push", "false");
    for (int i = 7; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!equals) return fprintf(stderr, "librdkafka: what is %s?\n", argv[i]), 2;
        *equals = 0;
        set(conf, argv[i], equals + 1);
    }
    if (!consumes) conf_set_dr_msg_cb(conf, on_delivery);
    size = (size_t)atoll(argv[5]);
    char text[512];
    void *client = new(consumes ? CONSUMER : PRODUCER, conf, text, sizeof text);
    if (!client) return fprintf(stderr, "%s\n", text), 1;
    void *topic = topic_new(client, argv[4], NULL);
    void *payload = calloc(1, size + 1);
    memset(payload, 'x', size);
    if (!strcmp(mode, "produce")) run_produce(client, topic, payload, atoll(argv[6]));
    else if (consumes) run_consume(topic, atoll(argv[6]));
    else run_latency(client, topic, payload, atof(argv[6]));
    return 0;
}
