/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole proxy between scripted ends on loopback: what sandbox and upstreams say, in which order,
 * when they hang up, and what the supervisor does meanwhile. The sandbox's ends connect to names,
 * or to the Unix socket of an explicit proxy. The input is a list of steps, two bytes each: what is
 * done by which end, and how much of what follows it says. Behind it all ends hang up; nothing may
 * be left of any connection, exchange or stream.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proxy/exchange/exchange.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/cursor.h"
#include "vethguard/base/log.h"
#include "vethguard/policy/load.h"

#define ENDS 4            /* of each side */
#define TURNS 64          /* of the loop at the end of an input */
#define STEPS 200         /* of one input */
#define DOUBT_SLACK_MS 15 /* loop/timer.c: a deadline may be late by 10 */
#define PATIENCE_MS 60000
#define BY_SOCKET 0x80       /* of a CONNECT's number */
#define PORT_MARK "\xab\xcd" /* in what is said: the port, which no input can know */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAME_P, NAME_T, NAME_COUNT };
static const char *const names_of[NAME_COUNT] = {"p.test", "t.test"};
static const char wide[] = "vethguard: 1\nname: fuzz\nallow:\n"
                           "  - {to: \"http://p.test:%1$u\"}\n  - {to: \"tcp://t.test:%1$u\"}\n";
static const char narrow[] = "vethguard: 1\nname: fuzz\nallow:\n"
                             "  - {to: \"http://p.test:%1$u\", methods: [GET], paths: [/a/**]}\n";

static struct loop *loop;
static struct loop_timer stop;
static struct policy policies[2], policy;
static struct names *names;
static struct credential_store *store;
static struct resolver *resolver;
static uint8_t *images[2];
static struct proxy *proxy;
static int origin_fd;
static uint16_t port;
static int ends[2][ENDS]; /* the sandbox's, the upstreams' */
static struct sockaddr_un unix_at;
static socklen_t unix_at_n = sizeof(unix_at);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* --- the world --- */

static void say_nothing(const struct log_record *record)
{
	(void)record;
}

static void on_stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void turn_for(int ms)
{
	loop_timer_set(&stop, ms);
	loop_run(loop);
}

static void turn(void)
{
	turn_for(0);
}

static void on_event(void *context, const struct event *event)
{
	static uint8_t bytes[EVENT_BYTES_MAX];
	struct event decoded;
	size_t n = event_encode(event, bytes, sizeof(bytes));

	(void)context;
	require(n > 0 && event_decode(bytes, n, &decoded) == 0);
}

static int ask_nobody(void *context, uint32_t credential, bool renew)
{
	(void)context, (void)credential, (void)renew;
	abort();
}

static int read_text(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	*text = strdup(context);
	*n = strlen(context);
	return 0;
}

static void load(unsigned which, const char *format)
{
	struct policy_load_options options = {0};
	struct diag_list diags = {0};
	char text[512];
	struct policy_reader reader = {.read = read_text, .context = text};
	size_t n;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), format, port);
#pragma GCC diagnostic pop
	require(policy_load(&reader, "/fuzz.yaml", &options, &images[which], &n, &diags) == 0);
	require(policy_open(&policies[which], images[which], n) == 0);
}

static struct sockaddr_in at(const struct ip *ip)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

	memcpy(&sin.sin_addr, ip->bytes, 4);
	return sin;
}

static int listen_at(const struct ip *ip)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
	struct sockaddr_in sin = at(ip);
	socklen_t n = sizeof(sin);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	require(bind(fd, (struct sockaddr *)&sin, n) == 0 && listen(fd, 16) == 0);
	require(getsockname(fd, (struct sockaddr *)&sin, &n) == 0);
	port = ntohs(sin.sin_port);
	return fd;
}

static int listen_unix(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const struct sockaddr_un any = {.sun_family = AF_UNIX}; /* the kernel chooses a name */

	require(bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family)) == 0);
	require(listen(fd, 16) == 0);
	require(getsockname(fd, (struct sockaddr *)&unix_at, &unix_at_n) == 0);
	return fd;
}

/* So that what is lost shows at the end. */
static void tear_down(void)
{
	proxy_free(proxy);
	credential_store_free(store);
	resolver_free(resolver);
	names_free(names);
	loop_timer_close(&stop);
	loop_free(loop);
	free(images[0]);
	free(images[1]);
}

static void set_up(void)
{
	static const struct ip_prefix pool4 = {{4, {127, 77}}, 16}, pool6 = {{6, {0xfd, 0x77}}, 64};
	static struct ip_prefix permit = {{4, {127, 0, 0, 1}}, 32};
	struct config_host hosts[NAME_COUNT] = {0};
	struct ip v4[NAME_COUNT], v6;

	log_to(say_nothing);
	loop = loop_new();
	require(loop_timer_open(loop, &stop, on_stop) == 0);
	origin_fd = listen_at(&permit.base);
	load(0, wide);
	load(1, narrow);
	policy = policies[0];
	names = names_new(&pool4, &pool6, 16);
	for (size_t i = 0; i < NAME_COUNT; i++) {
		snprintf(hosts[i].name, sizeof(hosts[i].name), "%s", names_of[i]);
		hosts[i].address = permit.base;
		names_assign(names, slice_from_string(names_of[i]), 1, &v4[i], &v6);
	}
	resolver = resolver_new(loop, NULL, 0, hosts, NAME_COUNT, 1000);
	store = credential_store_new(loop, &policy, ask_nobody, NULL);
	proxy = proxy_new(&(struct proxy_config){.loop = loop,
	        .policy = &policy,
	        .names = names,
	        .resolver = resolver,
	        .credentials = store,
	        .gate4 = {4, {127, 0, 0, 2}},
	        .permit = &permit,
	        .permit_count = 1,
	        .limits = {.connections = 16,
	                .upstream_connections = 8,
	                .upstream_idle = 2,
	                .streams = 64,
	                .udp_flows = 1,
	                .header_bytes = 8192},
	        .timeouts = {PATIENCE_MS, PATIENCE_MS, PATIENCE_MS, PATIENCE_MS, PATIENCE_MS,
	                PATIENCE_MS, PATIENCE_MS, PATIENCE_MS},
	        .record = on_event});
	require(proxy != NULL);
	proxy->waits[WAIT_DOUBT].delay_ms = 0; /* end_all() waits for a reset behind bytes */
	for (size_t i = 0; i < NAME_COUNT; i++)
		require(proxy_serve_tcp(proxy, listen_at(&v4[i])) == 0);
	require(proxy_serve_unix(proxy, listen_unix()) == 0);
	for (size_t i = 0; i < ENDS; i++)
		ends[0][i] = ends[1][i] = -1;
	atexit(tear_down);
}

/* --- steps --- */

static void hang_up(int *fd)
{
	static const struct linger reset = {.l_onoff = 1};

	if (*fd < 0)
		return;
	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(*fd);
	*fd = -1;
}

static void connect_to(int *fd, unsigned number)
{
	struct slice host = slice_from_string(names_of[number % NAME_COUNT]);
	struct sockaddr_in sin;
	struct ip v4, v6;

	hang_up(fd);
	if (number & BY_SOCKET) {
		*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(*fd, (struct sockaddr *)&unix_at, unix_at_n);
		return;
	}
	names_assign(names, host, 1, &v4, &v6);
	sin = at(&v4);
	*fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	connect(*fd, (struct sockaddr *)&sin,
	        sizeof(sin)); /* in vain where a hold leaves no room */
}

/* A new end that dials takes the place of this end. */
static void take_upstream(int *fd)
{
	int got = accept4(origin_fd, NULL, NULL, SOCK_CLOEXEC);

	if (got < 0)
		return;
	hang_up(fd);
	*fd = got;
}

static void change(void *context)
{
	policy = *(const struct policy *)context;
	require(credential_store_renumber(store, NULL, 0) == 0);
}

static void supervise(unsigned what)
{
	struct policy *next = &policies[what & 1];

	switch (what >> 1 & 3) {
	case 0:
		proxy_reauthorize(proxy, next, change, next);
		break;
	case 1:
		proxy_pause(proxy, EVENT_CAUSE_PAUSED, what & 1 ? "stopped" : NULL);
		break;
	case 2:
		proxy_hold(proxy, what & 1);
		break;
	default:
		proxy_end_all(proxy, EVENT_CAUSE_PAUSED, "stopped");
	}
}

enum { SAY, HEAR, END, RESET, CONNECT, TURN, SUPERVISE, SAY_MUCH };

static void say(int fd, struct slice said)
{
	static char bytes[16 * 256];
	char *mark;

	if (!said.n)
		return;
	memcpy(bytes, said.p, said.n);
	mark = memmem(bytes, said.n, PORT_MARK, 2);
	if (mark) {
		mark[0] = (char)(port >> 8);
		mark[1] = (char)port;
	}
	send(fd, bytes, said.n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void step(struct reader *r, unsigned what, unsigned n)
{
	static uint8_t bytes[65536];
	int *fd = &ends[what >> 3 & 1][what >> 4 & (ENDS - 1)];
	struct slice said;

	switch (what & 7) {
	case SAY:
	case SAY_MUCH:
		n *= (what & 7) == SAY_MUCH ? 16 : 1; /* at most 16 * 255 */
		said = reader_bytes(r, n < r->left ? n : r->left);
		say(*fd, said);
		break;
	case HEAR:
		recv(*fd, bytes, 1 + n * 257, MSG_DONTWAIT);
		break;
	case END:
		shutdown(*fd, SHUT_WR);
		break;
	case RESET:
		hang_up(fd);
		break;
	case CONNECT:
		if (what >> 3 & 1)
			take_upstream(fd);
		else
			connect_to(fd, n);
		break;
	case SUPERVISE:
		supervise(n);
		break;
	default:
		break;
	}
	turn();
}

static bool is_empty(void)
{
	return !proxy->client_count && !proxy->upstream_count && !proxy->exchanges &&
	       !proxy->stream_count;
}

static void end_all(void)
{
	proxy_hold(proxy, false);
	proxy_pause(proxy, EVENT_CAUSE_PAUSED, NULL);
	supervise(0);
	for (size_t i = 0; i < 2 * ENDS; i++)
		hang_up(&ends[i & 1][i >> 1]);
	for (unsigned i = 0; i < TURNS && !is_empty(); i++) {
		int late = accept4(origin_fd, NULL, NULL, SOCK_CLOEXEC);

		hang_up(&late);
		turn_for(i < TURNS / 2 ? 0 : DOUBT_SLACK_MS);
	}
	require(is_empty());
	for (int late; (late = accept4(origin_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
		hang_up(&late);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader r = reader_over(data, size);

	if (!proxy)
		set_up();
	/* The proxy slows floods down, and the fuzzer is one. */
	rate_init(&proxy->unproductive, 1u << 20, 1, clock_monotonic_ms());
	rate_init(&proxy->deny_throttle.rate, 1u << 20, 1, clock_monotonic_ms());
	for (unsigned i = 0; i < STEPS && r.left >= 2; i++) {
		unsigned what = reader_u8(&r), n = reader_u8(&r);

		step(&r, what, n);
	}
	end_all();
	return 0;
}
