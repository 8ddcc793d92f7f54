/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After the login bytes pass both ways, decrypted and encrypted again. What the sandbox sends is
 * searched for placeholders, as on any connection that is relayed. Neither side is read while the
 * other one does not take what it got.
 */
#include "proxy/postgres/postgres.h"

/* Counts n bytes. Returns how many of them may pass; if not all, *why says why (borrowed). */
static size_t grant(struct postgres *pg, bool from_sandbox, size_t n, const char **why)
{
	static char text[LIMIT_TEXT_MAX];
	const struct client *c = pg->client;
	const enum policy_limit_kind kind =
	        from_sandbox ? POLICY_LIMIT_UPLOAD : POLICY_LIMIT_DOWNLOAD;
	struct limit_hit hit = {0};
	size_t granted = (size_t)limit_add_some(c->proxy, c->decision.rule, kind, n, &hit);

	/* The limit is named only where nothing at all may pass. */
	if (granted && granted < n)
		granted +=
		        (size_t)limit_add_some(c->proxy, c->decision.rule, kind, n - granted, &hit);
	if (granted < n)
		*why = limit_text(c->proxy, &hit, text);
	return granted;
}

/* Looks for a placeholder, and records the first. Returns NULL, or why the connection ends. */
static const char *inspect(struct postgres *pg, const uint8_t *p, size_t n)
{
	static const char where[] = "a credential's placeholder was sent where it does not belong: "
	                            "to a database, after the login";

	return client_find_leak(pg->client, p, n, where);
}

static enum client_state cut(struct postgres *pg, enum event_cause cause, const char *why)
{
	postgres_record(pg, cause, why);
	postgres_close(pg);
	client_reset_at_end(pg->client, true);
	return CLIENT_CLOSED;
}

/* True if the side has taken so much of what it was sent that more may come. If it has not, its
 * on_drained follows: what still waits in the thread's buffers is sent first. */
static bool has_room(struct socket *side)
{
	if (socket_unsent(side) < SOCKET_HIGH)
		return true;
	socket_flush(side);
	return socket_unsent(side) < SOCKET_HIGH;
}

/* Passes n bytes of the sandbox on. Returns the client's next state. */
static enum client_state pass_out(struct postgres *pg, const uint8_t *p, size_t n)
{
	const char *why = inspect(pg, p, n);
	size_t granted;

	if (why)
		return cut(pg, EVENT_CAUSE_POLICY, why);
	granted = grant(pg, true, n, &why);
	socket_write(&pg->back, p, granted);
	pg->bytes_out += granted;
	if (granted < n)
		return cut(pg, EVENT_CAUSE_POLICY_LIMIT, why);
	loop_deadline_set(&pg->client->proxy->waits[WAIT_IDLE], &pg->client->deadline);
	return pg->client->state;
}

/* The sandbox has sent its last byte, usually after the message that says so. */
static enum client_state end_out(struct postgres *pg, enum socket_status status)
{
	if (status != SOCKET_EOF)
		return cut(pg, EVENT_CAUSE_POLICY, "one side reset the connection");
	socket_end(&pg->back);
	postgres_enter(pg, POSTGRES_ENDING);
	return pg->client->state;
}

enum client_state postgres_relay_out(struct postgres *pg)
{
	struct client *c = pg->client;
	const uint64_t before = c->socket.received;

	while (has_room(&pg->back)) {
		struct slice input;
		enum socket_status status;
		enum client_state next;

		if (socket_turn_is_over(&c->socket, before)) {
			client_wake(c);
			break;
		}
		status = client_input(c, &input);
		if (status == SOCKET_AGAIN)
			break;
		if (status != SOCKET_OK)
			return end_out(pg, status);
		next = pass_out(pg, (const uint8_t *)input.p, input.n);
		if (next != c->state)
			return next;
		client_used(c, input, input.n);
	}
	return c->state;
}

/* Passes n bytes of the database on. Returns false if the connection has ended. */
static bool pass_in(struct postgres *pg, const uint8_t *p, size_t n)
{
	struct client *c = pg->client;
	const char *why = NULL;
	const size_t granted = grant(pg, false, n, &why);

	socket_write(&c->socket, p, granted);
	pg->bytes_in += granted;
	if (granted < n) {
		postgres_end(pg, EVENT_CAUSE_POLICY_LIMIT, why);
		return false;
	}
	loop_deadline_set(&c->proxy->waits[WAIT_IDLE], &c->deadline);
	return true;
}

void postgres_relay_in(struct postgres *pg)
{
	struct client *c = pg->client;
	const uint64_t before = pg->back.received;

	while (has_room(&c->socket)) {
		enum socket_status status;
		size_t n;

		if (socket_turn_is_over(&pg->back, before)) {
			loop_task_queue(c->proxy->config.loop, &pg->go_on);
			return;
		}
		status = socket_read(&pg->back, c->proxy->plain, SOCKET_CHUNK, &n);
		if (status == SOCKET_AGAIN)
			return;
		if (status != SOCKET_OK) {
			postgres_end(pg, EVENT_CAUSE_POLICY,
			        status == SOCKET_EOF || pg->state == POSTGRES_ENDING
			                ? NULL
			                : "one side reset the connection");
			return;
		}
		if (pg->state == POSTGRES_RELAY && !pass_in(pg, c->proxy->plain, n))
			return;
	}
}

static void on_go_on(struct loop_task *task)
{
	struct postgres *pg = container_of(task, struct postgres, go_on);

	if (pg->state == POSTGRES_RELAY || pg->state == POSTGRES_ENDING)
		postgres_relay_in(pg);
}

void postgres_relay_begin(struct postgres *pg)
{
	const struct buf *in = &pg->received;

	pg->go_on.run = on_go_on;
	postgres_enter(pg, POSTGRES_RELAY);
	if (in->len && !pass_in(pg, buf_bytes(in), in->len))
		return;
	buf_fini(&pg->received);
	client_wake(pg->client);
	postgres_relay_in(pg);
}
