/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard-gateway: accepts the connections of sessions. main() shows the order of confinement:
 * the supervisor's first message brings every descriptor, then the jail closes (no file, no
 * outgoing connection, no privilege), and only then is a connection accepted.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/visitor.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "vethguard/base/secret.h"
#include "vethguard/jail/answer.h"
#include "vethguard/jail/jail.h"

#define START_TIMEOUT_MS 10000
#define EXIT_FAILED 125
#define TEXT_MESSAGE_BYTES 1024
#define FINDINGS_PER_S 1
#define FINDINGS_BURST_S 20
#define ENTERS_BURST_S 2
#define REFUSE_MS 250
#define REFUSE_LONG_MS 2000
#define ENTER_MS 10000
#define RETRY_MS 100
#define LINGER_MS 2000
#define IDLE_MS 60000
#define DOUBT_MS 1000
#define TX_MAX (512u << 10)
#define FDS_OF_CERTIFICATE 2

static void must(const char *what, int rc)
{
	if (rc < 0)
		die(EXIT_FAILED, "%s: %s", what, strerror(-rc));
}

/* --- the certificate --- */

/* Reads an operator's file into memory that is wiped after use. */
static int read_file(int fd, struct secret *out)
{
	uint8_t *p = malloc(GATEWAY_FILE_MAX);
	ssize_t n = 1;
	size_t got = 0;

	*out = (struct secret){0};
	while (p && n > 0 && got < GATEWAY_FILE_MAX) {
		n = read(fd, p + got, GATEWAY_FILE_MAX - got);
		got += n > 0 ? (size_t)n : 0;
	}
	*out = (struct secret){p, got, GATEWAY_FILE_MAX};
	return !p ? -ENOMEM : n < 0 ? -errno : n > 0 ? -EFBIG : 0;
}

static void wipe(struct secret *s)
{
	if (s->p)
		secret_wipe(s->p, s->cap);
	free(s->p);
	*s = (struct secret){0};
}

/* Takes a new certificate. One that cannot be used changes nothing. */
static void take_certificate(struct gateway *g, const int fds[FDS_OF_CERTIFICATE])
{
	char why[TLS_IDENTITY_WHY_MAX] = "";
	struct secret chain, key;
	struct tls_identity *identity = NULL;
	int rc = read_file(fds[0], &chain), key_rc = read_file(fds[1], &key);

	rc = rc ? rc : key_rc;
	if (!rc)
		identity = tls_identity_read(secret_slice(&chain), secret_slice(&key), why);
	wipe(&chain);
	wipe(&key);
	if (!identity) {
		log_error("the certificate cannot be used: %s; %s", rc ? strerror(-rc) : why,
		        g->identity ? "the one before stays"
		                    : "connections by TLS are refused until it can");
		return;
	}
	log_info("the certificate was %s", g->identity ? "replaced" : "read");
	tls_identity_release(g->identity);
	g->identity = identity;
}

static struct tls_identity *identity_for(void *context, struct slice sni, enum tls_key_kind kind)
{
	const struct gateway *g = context;

	(void)sni, (void)kind;
	return g->identity;
}

/* --- messages --- */

static int on_session(struct gateway *g, struct ipc_message *m)
{
	struct message_gateway_session session;
	int rc;

	if (message_gateway_session_decode(&m->body, &session) != 0 || m->fd_count)
		return -EBADMSG;
	rc = sessions_set(g, &session);
	if (rc)
		log_error("a session cannot be kept: %s", strerror(-rc));
	return 0;
}

static int on_session_end(struct gateway *g, struct ipc_message *m)
{
	struct message_gateway_session_end end;

	if (message_gateway_session_end_decode(&m->body, &end) != 0 || m->fd_count)
		return -EBADMSG;
	sessions_end(g, end.sandbox_id);
	return 0;
}

static int on_entered(struct gateway *g, struct ipc_message *m)
{
	struct message_gateway_entered entered;
	int fd = -1;

	if (message_gateway_entered_decode(&m->body, &entered) != 0 ||
	        m->fd_count > (entered.entered ? 1 : 0))
		return -EBADMSG;
	if (m->fd_count) {
		fd = m->fds[0];
		m->fds[0] = -1;
	}
	return visitor_entered(g, m->head.id, entered.entered, fd) ? 0 : -EBADMSG;
}

static int on_signer(struct gateway *g, struct ipc_message *m)
{
	static struct message_gateway_signer signer;

	if (message_gateway_signer_decode(&m->body, &signer) != 0 || m->fd_count)
		return -EBADMSG;
	return signers_take(g, &signer);
}

static int on_verdict(struct gateway *g, struct ipc_message *m)
{
	struct message_gateway_verdict verdict;

	if (message_gateway_verdict_decode(&m->body, &verdict) != 0 || m->fd_count)
		return -EBADMSG;
	return visitor_decided(g, m->head.id, &verdict) ? 0 : -EBADMSG;
}

static int on_certificate(struct gateway *g, struct ipc_message *m)
{
	if (!reader_done(&m->body) || m->fd_count != FDS_OF_CERTIFICATE || !g->tls)
		return -EBADMSG;
	take_certificate(g, m->fds);
	return 0;
}

static int hold(struct gateway *g, struct ipc_message *m, bool held)
{
	if (!reader_done(&m->body) || m->fd_count)
		return -EBADMSG;
	g->held = held;
	g->hold_id = held ? m->head.id : 0;
	receivers_resume(g);
	if (held)
		http2_refuse_all(g);
	visitors_tell_held(g);
	return 0;
}

static int stop(struct gateway *g, struct ipc_message *m)
{
	const struct message_text text = {SLICE("")};
	uint8_t message[64];

	if (!reader_done(&m->body) || m->fd_count)
		return -EBADMSG;
	ipc_send(&g->supervisor, message,
	        message_text_encode(message, sizeof(message), MESSAGE_STOPPED, m->head.id, &text),
	        NULL, 0);
	loop_stop(g->loop);
	return 0;
}

static int on_message(struct ipc_peer *peer, struct ipc_message *m)
{
	struct gateway *g = container_of(peer, struct gateway, supervisor);

	switch (m->head.type) {
	case MESSAGE_GATEWAY_SESSION:
		return on_session(g, m);
	case MESSAGE_GATEWAY_SESSION_END:
		return on_session_end(g, m);
	case MESSAGE_GATEWAY_ENTERED:
		return on_entered(g, m);
	case MESSAGE_GATEWAY_SIGNER:
		return on_signer(g, m);
	case MESSAGE_GATEWAY_VERDICT:
		return on_verdict(g, m);
	case MESSAGE_GATEWAY_CERTIFICATE:
		return on_certificate(g, m);
	case MESSAGE_GATEWAY_HOLD:
		return hold(g, m, true);
	case MESSAGE_GATEWAY_RESUME:
		return hold(g, m, false);
	case MESSAGE_DESCRIBE:
		return jail_answer(peer, m);
	case MESSAGE_STOP:
		return stop(g, m);
	default:
		return -EBADMSG;
	}
}

/* The supervisor is gone, so no connection could reach a worker. */
static void on_end(struct ipc_peer *peer, int error)
{
	struct gateway *g = container_of(peer, struct gateway, supervisor);

	g->status = error ? EXIT_FAILED : 0;
	loop_stop(g->loop);
}

/* --- the start --- */

static uint64_t await_start(struct gateway *g, int fds[MESSAGE_FDS_MAX])
{
	static uint8_t buf[MESSAGE_BYTES_MAX];
	struct ipc_message m;
	size_t count;

	must("no message from the supervisor",
	        ipc_receive_blocking(IPC_SUPERVISOR_FD, START_TIMEOUT_MS, buf, &m));
	if (m.head.type != MESSAGE_GATEWAY_START ||
	        message_gateway_start_decode(&m.body, &g->start) != 0)
		die(EXIT_FAILED, "the supervisor's first message is not the one expected");
	count = g->start.listener_count + (g->start.has_certificate ? FDS_OF_CERTIFICATE : 0);
	if (m.fd_count != count)
		die(EXIT_FAILED, "the supervisor's first message came with %zu descriptors",
		        m.fd_count);
	memcpy(fds, m.fds, count * sizeof(*fds));
	return m.head.id;
}

static void open_tls(struct gateway *g, const int *fds)
{
	if (!g->start.has_certificate)
		return;
	g->tls = tls_server_new(identity_for, g);
	if (!g->tls)
		die(EXIT_FAILED, "no memory");
	tls_server_wipe_plaintext(g->tls); /* tokens */
	if (g->start.client_certificates)
		tls_server_ask_certificates(g->tls);
	take_certificate(g, fds);
	close(fds[0]);
	close(fds[1]);
}

static void on_again(struct loop_timer *timer)
{
	receivers_end_pause(container_of(timer, struct gateway, accept_again));
}

static void open_parts(struct gateway *g)
{
	const int64_t now_ms = clock_monotonic_ms();
	const int64_t waits[WAIT_COUNT] = {[WAIT_PROOF] = g->start.handshake_ms,
	        [WAIT_REFUSE] = REFUSE_MS,
	        [WAIT_REFUSE_LONG] = REFUSE_LONG_MS,
	        [WAIT_ENTER] = ENTER_MS,
	        [WAIT_RETRY] = RETRY_MS,
	        [WAIT_LINGER] = LINGER_MS,
	        [WAIT_IDLE] = IDLE_MS,
	        [WAIT_DOUBT] = DOUBT_MS};

	g->held = true; /* until it knows the sessions */
	g->loop = loop_new();
	g->cipher = malloc(GATEWAY_CHUNK);
	g->plain = malloc(GATEWAY_PLAIN_MAX);
	g->frames = malloc(GATEWAY_PLAIN_MAX);
	buf_init(&g->tx, TX_MAX);
	list_init(&g->unproved);
	list_init(&g->http2);
	list_init(&g->by_address);
	rate_init(&g->enters, GATEWAY_ENTERS_PER_S, ENTERS_BURST_S, now_ms);
	rate_init(&g->checks, GATEWAY_WRONG_SIGNATURES_PER_S, ENTERS_BURST_S, now_ms);
	rate_init(&g->asks, GATEWAY_ASKS_PER_S, ENTERS_BURST_S, now_ms);
	rate_init(&g->findings, FINDINGS_PER_S, FINDINGS_BURST_S, now_ms);
	if (!g->loop || !g->cipher || !g->plain || !g->frames)
		die(EXIT_FAILED, "no memory");
	must("no SHA-256", digest_init(&g->digest));
	must("no timer", loop_timer_open(g->loop, &g->accept_again, on_again));
	for (size_t i = 0; i < WAIT_COUNT; i++)
		must("no timer",
		        loop_deadlines_open(g->loop, &g->waits[i], waits[i], visitor_on_deadline));
}

/* Raises the limit on descriptors as far as allowed: a relayed connection needs two. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void enter_jail(void)
{
	const char *step;
	int rc = jail_enter(JAIL_GATEWAY, NULL, 0, &step);

	must(step, rc);
}

static void serve(struct gateway *g, uint64_t start_id, const int *listeners)
{
	uint8_t message[TEXT_MESSAGE_BYTES];

	must("no supervisor", ipc_peer_open(g->loop, &g->supervisor, IPC_SUPERVISOR_FD,
	                              "supervisor", on_message, on_end));
	for (size_t i = 0; i < g->start.listener_count; i++)
		must("cannot accept", receiver_open(g, listeners[i], g->start.listener_kind[i]));
	must("cannot report",
	        ipc_send(&g->supervisor, message,
	                message_empty(message, sizeof(message), MESSAGE_GATEWAY_READY, start_id),
	                NULL, 0));
	must("the loop does not run", loop_run(g->loop));
}

static void clean_up(struct gateway *g)
{
	receivers_close(g);
	visitors_close(g);
	addresses_free(g);
	signers_free(g);
	replay_free(g);
	for (size_t i = 0; i < WAIT_COUNT; i++)
		loop_deadlines_close(&g->waits[i]);
	loop_timer_close(&g->accept_again);
	ipc_peer_close(&g->supervisor);
	tls_server_free(g->tls);
	tls_identity_release(g->identity);
	digest_fini(&g->digest);
	buf_fini(&g->tx);
	loop_free(g->loop);
	free(g->cipher);
	free(g->plain);
	free(g->frames);
}

int main(int argc, char **argv)
{
	static struct gateway g;
	int fds[MESSAGE_FDS_MAX];
	uint64_t start_id;

	log_open_role("vethguard-gateway", argc, argv, EXIT_FAILED);
	jail_start(IPC_SUPERVISOR_FD + 1);
	raise_limit();
	start_id = await_start(&g, fds);
	log_open("vethguard-gateway", (enum log_level)g.start.log_level);
	tls_library_init();
	open_parts(&g);
	open_tls(&g, fds);
	enter_jail();
	serve(&g, start_id, fds + (g.start.has_certificate ? FDS_OF_CERTIFICATE : 0));
	clean_up(&g);
	return g.status;
}
