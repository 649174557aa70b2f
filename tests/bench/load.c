/* Closed-loop load: N connections, each with one request out; prints one line of JSON.
 *
 *   load PORT CONNECTIONS SECONDS FRAME_FILE [--kafka] [--zero OFFSET]... [--rate N]
 *
 * The file holds one whole frame, size prefix included. Without --kafka the answer must be the same
 * bytes. With --kafka the correlation id (bytes 8 to 11 asked, 4 to 7 answered) counts
 * up and is checked. Each --zero names two bytes of the answer that must be 0: an error code.
 * With --rate no more than N requests a second are sent, all connections together.
 * A tenth of the duration (at least 0.1 s) warms up first: "requests" counts all, the other figures
 * what came after it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MAX = 16384, FRAME_MAX = 1 << 20, ZEROS_MAX = 8, EVENTS_MAX = 512 };

struct connection {
    int socket;
    uint32_t correlation;
    uint64_t sent_at;
    size_t got;
    unsigned char answer[ANSWER_MAX];
};

static unsigned char frame[FRAME_MAX];
static size_t frame_size;
static int kafka, zeros[ZEROS_MAX], zero_count;
static uint32_t *samples; /* latencies in ns / 16: up to 68 s */
static size_t sample_count, sample_room, requests;
static double rate;
static uint64_t started_at, asked;
/* With --rate only: connections that were answered, and wait for their turn. */
static struct connection **idle;
static int idle_first, idle_count, idle_room;

static void fail(const char *what) {
    fprintf(stderr, "load: %s (errno %d: %s)\n", what, errno, strerror(errno));
    exit(1);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void keep(uint64_t nanoseconds) {
    if (sample_count == sample_room) {
        sample_room = sample_room ? sample_room * 2 : 1 << 20;
        samples = realloc(samples, sample_room * sizeof *samples);
        if (!samples) fail("out of memory");
    }
    samples[sample_count++] = (uint32_t)(nanoseconds / 16);
}

static void ask(struct connection *c) {
    if (kafka) {
        uint32_t id = htonl(++c->correlation);
        memcpy(frame + 8, &id, 4);
    }
    c->got = 0;
    c->sent_at = now();
    if (send(c->socket, frame, frame_size, MSG_NOSIGNAL) != (ssize_t)frame_size)
        fail("a request did not fit into an empty socket");
}

static void check(const struct connection *c, size_t size) {
    if (kafka) {
        uint32_t id;
        memcpy(&id, c->answer + 4, 4);
        if (ntohl(id) != c->correlation) fail("answered with another correlation id");
    } else if (size != frame_size || memcmp(c->answer, frame, size)) {
        fail("the echo differs");
    }
    for (int i = 0; i < zero_count; i++) {
        size_t at = (size_t)zeros[i];
        if (at + 2 > size) fail("the answer is too short for its error code");
        if (c->answer[at] | c->answer[at + 1]) {
            int code = (int16_t)(c->answer[at] << 8 | c->answer[at + 1]);
            fprintf(stderr, "load: error code %d at byte %zu\n", code, at);
            exit(1);
        }
    }
}

/* Sends the next request, now or when the rate allows it. */
static void ask_in_time(struct connection *c) {
    if (rate > 0) idle[(idle_first + idle_count++) % idle_room] = c;
    else ask(c);
}

/* Sends what the rate allows by now. A broker that was slow is not made up for: a second's worth
 * that is missing is let go. */
static void ask_idle(void) {
    double seconds = (double)(now() - started_at) / 1e9, due = seconds * rate - (double)asked;
    if (due > rate) asked += (uint64_t)(due - rate);
    for (; idle_count && due >= 1; due--, asked++, idle_count--) {
        ask(idle[idle_first]);
        idle_first = (idle_first + 1) % idle_room;
    }
}

/* Reads what is there; 1 when the answer is complete. */
static int receive(struct connection *c) {
    ssize_t n = recv(c->socket, c->answer + c->got, ANSWER_MAX - c->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) fail(n ? "recv" : "the server closed a connection");
    c->got += (size_t)n;
    if (c->got < 4) return 0;
    uint32_t prefix;
    memcpy(&prefix, c->answer, 4);
    size_t size = 4 + (size_t)ntohl(prefix);
    if (size > ANSWER_MAX) fail("the answer is too large");
    if (c->got > size) fail("more bytes than one answer");
    if (c->got < size) return 0;
    check(c, size);
    return 1;
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double microseconds(double quantile) {
    if (!sample_count) return 0;
    size_t index = (size_t)(quantile * (double)sample_count);
    return samples[index < sample_count ? index : sample_count - 1] * 16 / 1000.0;
}

static void connect_all(struct connection *all, int count, int port, int poller) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < count; i++) {
        int one = 1;
        all[i].socket = socket(AF_INET, SOCK_STREAM, 0);
        if (all[i].socket < 0) fail("socket");
        if (connect(all[i].socket, (struct sockaddr *)&address, sizeof address)) fail("connect");
        setsockopt(all[i].socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, all[i].socket, &event)) fail("epoll_ctl");
    }
}

int main(int argc, char **argv) {
    if (argc < 5) return fprintf(stderr, "usage: see the head of load.c\n"), 2;
    int count = atoi(argv[2]);
    double seconds = atof(argv[3]);
    for (int i = 5; i < argc; i++) {
        if (!strcmp(argv[i], "--kafka")) kafka = 1;
        else if (!strcmp(argv[i], "--zero") && i + 1 < argc && zero_count < ZEROS_MAX)
            zeros[zero_count++] = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--rate") && i + 1 < argc) rate = atof(argv[++i]);
        else return fprintf(stderr, "load: what is %s?\n", argv[i]), 2;
    }
    FILE *file = fopen(argv[4], "rb");
    if (!file) fail(argv[4]);
    frame_size = fread(frame, 1, FRAME_MAX, file);
    fclose(file);

    struct connection *all = calloc((size_t)count, sizeof *all);
    int poller = epoll_create1(0);
    idle = calloc((size_t)count, sizeof *idle);
    idle_room = count;
    if (!all || !idle || poller < 0) fail("start");
    connect_all(all, count, atoi(argv[1]), poller);
    started_at = now();
    for (int i = 0; i < count; i++) ask_in_time(&all[i]);

    double warm_up = seconds / 10 < 0.1 ? 0.1 : seconds / 10;
    uint64_t begin = now() + (uint64_t)(warm_up * 1e9), end = begin + (uint64_t)(seconds * 1e9);
    uint64_t time = 0;
    struct epoll_event events[EVENTS_MAX];
    while (time < end) {
        if (rate > 0) ask_idle();
        int ready = epoll_wait(poller, events, EVENTS_MAX, idle_count ? 1 : 5000);
        if (ready < 0 && errno == EINTR) continue;
        if (!ready && idle_count) {
            time = now();
            continue;
        }
        if (ready <= 0) fail(ready ? "epoll_wait" : "no answer for five seconds");
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            if (!receive(c)) continue;
            time = now();
            requests++;
            if (time >= begin && time < end) keep(time - c->sent_at);
            ask_in_time(c);
        }
    }
    qsort(samples, sample_count, sizeof *samples, by_size);
    printf("{\"requests\": %zu, \"rate\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
           "\"p999_us\": %.1f}\n",
           requests, (double)sample_count / seconds, microseconds(0.5), microseconds(0.99),
           microseconds(0.999));
    return 0;
}
