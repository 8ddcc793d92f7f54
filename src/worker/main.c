/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard-worker: the proxy of one sandbox. main() confines the worker in this order:
 * 1. an empty root and unprivileged ids, which are the same for every sandbox, so that a spare
 *    worker has done this in advance;
 * 2. the CA from the keeper and the first message from the supervisor (store.c), with every
 *    descriptor the worker will ever get;
 * 3. Landlock and seccomp, which depend on that message;
 * 4. only then the parts that read what a sandbox sends.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/shared_names.h"
#include "vethguard/jail/answer.h"
#include "worker/worker.h"

#define WORKER_OOM_SCORE "500" /* proc(5), oom_score_adj */
#define OWN_PAGES_BYTES (1 << 20)

#define TCP_PORTS_MAX 1024 /* TCP ports that a policy may name */
#define PORTS_MAX (TCP_PORTS_MAX + CONFIG_SERVERS_MAX)

static void must(const char *what, int r)
{
	if (r < 0)
		die(WORKER_EXIT_FAILED, "%s: %s", what, strerror(-r));
}

/* --- the supervisor --- */

/* Takes a connection that the gateway has authenticated. It is closed if nothing new is served any
 * more, or a bound is reached. */
static int on_enter(struct worker *w, struct ipc_message *m)
{
	struct message_worker_enter enter;

	if (message_worker_enter_decode(&m->body, &enter) < 0 || m->fd_count != 1)
		return -EBADMSG;
	if (w->state == WORKER_SERVING)
		(void)proxy_enter(w->proxy, worker_take_fd(m), &enter);
	return 0;
}

static int on_cut(struct worker *w, struct ipc_message *m)
{
	if (!reader_done(&m->body))
		return -EBADMSG;
	if (w->proxy)
		proxy_cut(w->proxy);
	return 0;
}

static int on_message(struct ipc_peer *peer, struct ipc_message *m)
{
	struct worker *w = container_of(peer, struct worker, supervisor);
	struct message_worker_resume resume;
	struct message_worker_retire retire;

	switch (m->head.type) {
	case MESSAGE_WORKER_PAUSE:
	case MESSAGE_WORKER_HOLD:
		return worker_be_quiet(w, m);
	case MESSAGE_WORKER_RESUME:
		if (message_worker_resume_decode(&m->body, &resume) < 0)
			return -EBADMSG;
		worker_resume(w, resume.why);
		return 0;
	case MESSAGE_WORKER_RETIRE:
		if (message_worker_retire_decode(&m->body, &retire) < 0 || m->fd_count != 1)
			return -EBADMSG;
		return worker_retire(w, m->head.id, retire.generation, worker_take_fd(m));
	case MESSAGE_WORKER_KEEPER:
		if (!reader_done(&m->body) || m->fd_count != 1)
			return -EBADMSG;
		return keeper_replace(w, worker_take_fd(m));
	case MESSAGE_WORKER_STATS_GET:
		if (!reader_done(&m->body))
			return -EBADMSG;
		worker_send_stats(w, m->head.id);
		return 0;
	case MESSAGE_WORKER_ANSWER:
		return worker_take_answer(w, m);
	case MESSAGE_WORKER_GRANT:
		return worker_take_grant(w, m);
	case MESSAGE_WORKER_PROPOSED:
		return worker_take_proposed(w, m);
	case MESSAGE_WORKER_LIMITS:
		return worker_take_limits(w, m);
	case MESSAGE_WORKER_LISTEN:
		return worker_listen(w, m);
	case MESSAGE_WORKER_REACHED:
		return worker_reached(w, m);
	case MESSAGE_WORKER_CALLED:
		return worker_called(w, m);
	case MESSAGE_WORKER_VISIT:
		return worker_visited(w, m);
	case MESSAGE_WORKER_CREDENTIAL:
		return worker_operate(w, m);
	case MESSAGE_WORKER_ENTER:
		return on_enter(w, m);
	case MESSAGE_WORKER_CUT:
		return on_cut(w, m);
	case MESSAGE_WORKER_ASSOCIATED:
		return worker_associated(w, m);
	case MESSAGE_DESCRIBE:
		return jail_answer(peer, m);
	case MESSAGE_STOP:
		worker_stop(w, m->head.id);
		return 0;
	default:
		return -EBADMSG;
	}
}

/* The supervisor is gone: nobody could stop this worker or repair its fence. */
static void on_end(struct ipc_peer *peer, int error)
{
	struct worker *w = container_of(peer, struct worker, supervisor);

	w->status = error ? WORKER_EXIT_FAILED : w->status;
	loop_stop(w->loop);
}

/* Gives large buffers (what an upstream sent and the client does not take yet) pages of their own,
 * which go back to the system when such a buffer grows or is freed. By default the first such free
 * raises malloc()'s threshold: it serves the next buffer from the heap, and keeps twice its size
 * there (mallopt(3), M_MMAP_THRESHOLD). */
static void bound_heap(void)
{
	mallopt(M_MMAP_THRESHOLD, OWN_PAGES_BYTES);
	mallopt(M_TRIM_THRESHOLD, 2 * OWN_PAGES_BYTES);
}

static void leave_host(void)
{
	struct jail_ids ids = jail_role_ids(JAIL_WORKER, (uint32_t)getpid());

	must("cannot get an empty root", jail_empty_root());
	must("cannot drop privileges", jail_drop(ids));
}

static size_t add_port(uint16_t ports[PORTS_MAX], size_t count, uint16_t port)
{
	for (size_t i = 0; i < count; i++)
		if (ports[i] == port)
			return count;
	ports[count] = port;
	return count + 1;
}

/* Ports that may be dialed: those of the policy, or the egress proxy's port if there is one; and
 * those of the resolvers, for answers that do not fit into a datagram. SIZE_MAX: all. */
static size_t dialled_ports(const struct worker *w, uint16_t ports[PORTS_MAX])
{
	const struct message_worker_start *s = &w->start;
	size_t count = policy_tcp_ports(&w->policy, ports, TCP_PORTS_MAX);

	if (s->egress.proxy_port) {
		ports[0] = s->egress.proxy_port;
		count = 1;
	}
	if (count > TCP_PORTS_MAX)
		return SIZE_MAX;
	for (size_t i = 0; i < s->server_count; i++)
		count = add_port(
		        ports, count, s->servers[i].port ? s->servers[i].port : CONFIG_SERVER_PORT);
	return count;
}

static void narrow(struct worker *w)
{
	uint16_t ports[PORTS_MAX];
	bool binds = w->start.egress.address4.family || w->start.egress.address6.family;
	int rc = jail_landlock(ports, dialled_ports(w, ports), binds);

	if (rc != -EOPNOTSUPP)
		must("cannot use Landlock", rc);
	must("cannot filter system calls", jail_seccomp(JAIL_WORKER, binds));
	jail_probes_connections();
}

/* The service manager protects the daemon when memory runs out, and children inherit that. A worker
 * should be killed before the others: it is replaced, and only its own sandbox is cut off
 * meanwhile. */
static void be_killed_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, WORKER_OOM_SCORE, sizeof(WORKER_OOM_SCORE) - 1);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	static struct worker w;

	log_open_role("vethguard-worker", argc, argv, WORKER_EXIT_FAILED);
	jail_start(IPC_SUPERVISOR_FD + 1);
	be_killed_first();
	bound_heap();
	signal(SIGPIPE, SIG_IGN); /* splice(2) to a socket whose peer is gone raises it */
	tls_library_init();
	leave_host();
	ca_warm_up(); /* a spare worker has time for this */
	(void)jail_seccomp_prepare(JAIL_WORKER, false);
	w.loop = loop_new();
	if (!w.loop)
		die(WORKER_EXIT_FAILED, "no memory");
	worker_await_start(&w);
	log_open("vethguard-worker", (enum log_level)w.start.log_level);
	must("the policy cannot be used", worker_open_policy(&w));
	must("no guard of shared memory", shared_names_guard());
	narrow(&w);
	must("no supervisor", ipc_peer_open(w.loop, &w.supervisor, IPC_SUPERVISOR_FD, "supervisor",
	                              on_message, on_end));
	must("cannot begin", worker_prepare(&w));
	must("the loop does not run", loop_run(w.loop));
	return w.status;
}
