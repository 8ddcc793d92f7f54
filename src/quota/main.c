/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard-quota: asks a Valkey or Redis server how much of a budget this host may still take, for
 * all budgets that it shares with other hosts. The server and whoever is on the way to it are not
 * trusted. So hiredis and TLS read its answers in a process that has no file, no other secret than
 * the server's password, and no other way out than the server's port.
 *
 * main() shows the order of confinement. The supervisor's first message names the server and brings
 * the descriptors: the bell that workers ring, trusted CAs, the password. Then the jail closes: by
 * TCP only the ports of the server and of the resolvers can be dialed. Memories of quotas come
 * later, by descriptor.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "quota/book.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/peer.h"
#include "vethguard/ipc/shared_names.h"
#include "vethguard/jail/answer.h"
#include "vethguard/jail/jail.h"

#define START_TIMEOUT_MS 10000
#define EXIT_FAILED 125
#define TRUSTED_MAX (16u << 20)
#define PASSWORD_MAX 4096
#define RESOLVE_MS 1500
#define FDS_BEFORE_PASSWORD 2

struct quota_process {
	struct loop *loop;
	struct ipc_peer supervisor;
	struct message_quota_start start;
	uint64_t start_id;
	struct slice trusted_pem; /* mapped */
	struct tls_trust *trust;
	struct tls_client *tls;
	struct resolver *resolver;
	struct secret password;
	struct book book;
	int status;
};

static uint8_t received[MESSAGE_BYTES_MAX];

static void must(const char *what, int rc)
{
	if (rc < 0)
		die(EXIT_FAILED, "%s: %s", what, strerror(-rc));
}

/* --- messages --- */

static void say(struct quota_process *q, const char *sentence)
{
	uint8_t message[SERVER_WHY_MAX + 64];
	const struct message_text m = {slice_from_string(sentence)};

	ipc_send(&q->supervisor, message,
	        message_text_encode(message, sizeof(message), MESSAGE_QUOTA_SAYS, q->start_id, &m),
	        NULL, 0);
}

static void on_server(struct book *book, const char *why)
{
	say(container_of(book, struct quota_process, book), why ? why : "");
}

static int on_budgets(struct quota_process *q, struct ipc_message *m)
{
	static struct message_quota_budgets budgets;
	int fd, rc;

	if (message_quota_budgets_decode(&m->body, &budgets) != 0 || m->fd_count != 1)
		return -EBADMSG;
	fd = m->fds[0];
	m->fds[0] = -1;
	rc = book_tell(&q->book, &budgets, fd);
	if (rc) /* its workers find no lease, and so nothing of its budgets passes */
		log_error("the memory of a budget cannot be used: %s", strerror(-rc));
	return 0;
}

static int on_budgets_end(struct quota_process *q, struct ipc_message *m)
{
	struct message_quota_end end;

	if (message_quota_end_decode(&m->body, &end) != 0 || m->fd_count)
		return -EBADMSG;
	book_end(&q->book, end.memory);
	return 0;
}

static int stop(struct quota_process *q, struct ipc_message *m)
{
	const struct message_text text = {SLICE("")};
	uint8_t message[64];

	if (!reader_done(&m->body) || m->fd_count)
		return -EBADMSG;
	ipc_send(&q->supervisor, message,
	        message_text_encode(message, sizeof(message), MESSAGE_STOPPED, m->head.id, &text),
	        NULL, 0);
	loop_stop(q->loop);
	return 0;
}

static int on_message(struct ipc_peer *peer, struct ipc_message *m)
{
	struct quota_process *q = container_of(peer, struct quota_process, supervisor);

	switch (m->head.type) {
	case MESSAGE_QUOTA_BUDGETS:
		return on_budgets(q, m);
	case MESSAGE_QUOTA_END:
		return on_budgets_end(q, m);
	case MESSAGE_DESCRIBE:
		return jail_answer(peer, m);
	case MESSAGE_STOP:
		return stop(q, m);
	default:
		return -EBADMSG;
	}
}

static void on_end(struct ipc_peer *peer, int error)
{
	struct quota_process *q = container_of(peer, struct quota_process, supervisor);

	q->status = error ? EXIT_FAILED : 0;
	loop_stop(q->loop);
}

/* --- the start --- */

/* The texts of the message stay in `received`. */
static void await_start(struct quota_process *q, int fds[MESSAGE_FDS_MAX])
{
	struct ipc_message m;
	size_t count;

	must("no message from the supervisor",
	        ipc_receive_blocking(IPC_SUPERVISOR_FD, START_TIMEOUT_MS, received, &m));
	if (m.head.type != MESSAGE_QUOTA_START ||
	        message_quota_start_decode(&m.body, &q->start) != 0)
		die(EXIT_FAILED, "the supervisor's first message is not the one expected");
	count = FDS_BEFORE_PASSWORD + (q->start.has_password ? 1 : 0);
	if (m.fd_count != count)
		die(EXIT_FAILED, "the supervisor's first message came with %zu descriptors",
		        m.fd_count);
	q->start_id = m.head.id;
	memcpy(fds, m.fds, count * sizeof(*fds));
}

static void map_trusted(struct quota_process *q, int fd)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > TRUSTED_MAX)
		die(EXIT_FAILED, "there are no trusted CAs");
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		die(EXIT_FAILED, "no memory for trusted CAs");
	q->trusted_pem = slice_of(p, (size_t)st.st_size);
	close(fd);
}

static void open_tls(struct quota_process *q, int fd)
{
	tls_library_init();
	map_trusted(q, fd);
	if (!q->start.tls)
		return;
	q->trust = tls_trust_new((const uint8_t *)q->trusted_pem.p, q->trusted_pem.n);
	q->tls = q->trust ? tls_client_new(q->trust) : NULL;
	if (!q->tls)
		die(EXIT_FAILED, "no memory for TLS");
}

/* The file's one line is the password. */
static void read_password(struct quota_process *q, int fd)
{
	struct secret *secret = &q->password;
	ssize_t n = 1;

	if (secret_alloc(secret, PASSWORD_MAX) < 0)
		die(EXIT_FAILED, "there is no memory that may be locked");
	while (n != 0 && secret->n < secret->cap) {
		n = read(fd, secret->p + secret->n, secret->cap - secret->n);
		if (n < 0 && errno != EINTR)
			die(EXIT_FAILED, "the password's file cannot be read");
		secret->n += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	if (secret->n == secret->cap)
		die(EXIT_FAILED, "the password's file is too long");
	while (secret->n && (secret->p[secret->n - 1] == '\n' || secret->p[secret->n - 1] == '\r'))
		secret->n--;
	if (!secret->n || memchr(secret->p, '\n', secret->n) || memchr(secret->p, 0, secret->n))
		die(EXIT_FAILED, "the password's file does not have exactly one line");
}

static void open_book(struct quota_process *q, int bell)
{
	struct server *server = &q->book.server;

	q->loop = loop_new();
	q->resolver = q->loop ? resolver_new(q->loop, q->start.servers, q->start.server_count, NULL,
	                                0, RESOLVE_MS)
	                      : NULL;
	if (!q->resolver)
		die(EXIT_FAILED, "no memory");
	server->start = &q->start;
	server->password = secret_slice(&q->password);
	server->tls_client = q->tls;
	server->resolver = q->resolver;
	q->book.bell = bell;
	q->book.on_server = on_server;
}

static void enter_jail(const struct quota_process *q)
{
	uint16_t ports[1 + CONFIG_SERVERS_MAX];
	const char *step;
	size_t count = 0;
	int rc;

	ports[count++] = q->start.port;
	if (!q->start.address_count)
		for (size_t i = 0; i < q->start.server_count; i++)
			ports[count++] = q->start.servers[i].port ? q->start.servers[i].port
			                                          : CONFIG_SERVER_PORT;
	rc = jail_enter(JAIL_QUOTA, ports, count, &step);
	must(step, rc);
	jail_probes_connections();
}

static void serve(struct quota_process *q)
{
	must("no supervisor", ipc_peer_open(q->loop, &q->supervisor, IPC_SUPERVISOR_FD,
	                              "supervisor", on_message, on_end));
	must("no book", book_open(&q->book, q->loop));
	must("the loop does not run", loop_run(q->loop));
}

static void clean_up(struct quota_process *q)
{
	book_close(&q->book);
	ipc_peer_close(&q->supervisor);
	resolver_free(q->resolver);
	loop_free(q->loop);
	tls_client_free(q->tls);
	tls_trust_free(q->trust);
	munmap((void *)(uintptr_t)q->trusted_pem.p, q->trusted_pem.n);
	secret_free(&q->password);
}

int main(int argc, char **argv)
{
	static struct quota_process q;
	int fds[MESSAGE_FDS_MAX];

	log_open_role("vethguard-quota", argc, argv, EXIT_FAILED);
	jail_start(IPC_SUPERVISOR_FD + 1);
	await_start(&q, fds);
	log_open("vethguard-quota", (enum log_level)q.start.log_level);
	must("cannot guard memory", shared_names_guard());
	open_tls(&q, fds[1]);
	open_book(&q, fds[0]);
	enter_jail(&q);
	if (q.start.has_password)
		read_password(&q, fds[FDS_BEFORE_PASSWORD]);
	q.book.server.password = secret_slice(&q.password);
	serve(&q);
	clean_up(&q);
	return q.status;
}
