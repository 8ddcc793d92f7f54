/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the server is asked one question at a time. When it can be asked, the first
 * memory with a budget that needs it has its turn, and goes to the end of the list; the budgets of
 * a memory take turns too. A question is about one budget, or about since when the server has its
 * data: if that has changed, every budget tells its claims again.
 */
#include "quota/book.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

static void free_memory(struct book *book, struct book_memory *m)
{
	if (book->asking >= m->budgets && book->asking < m->budgets + m->count)
		book->asking = NULL;
	DL_DELETE(book->memories, m);
	book->memory_count--;
	quotas_close(&m->quotas);
	free(m);
}

static struct book_memory *find(const struct book *book, uint64_t id)
{
	struct book_memory *m;

	DL_FOREACH(book->memories, m)
	{
		if (m->id == id)
			return m;
	}
	return NULL;
}

/* --- asking --- */

static void ask_budget(struct book *book, struct budget *b)
{
	char *command = NULL;
	size_t n = script_command(&b->question, &command);

	book->asking = b;
	book->asks_since = false;
	server_ask(&book->server, command, n);
	if (n)
		redisFreeCommand(command);
}

/* Asks for the first budget of this memory that needs it. Returns false if none does. */
static bool ask_of(struct book *book, struct book_memory *m, int64_t now_ms)
{
	for (size_t k = 0; k < m->count; k++) {
		size_t i = (m->turn + k) % m->count;

		if (!budget_look(&m->budgets[i], &book->clock, now_ms))
			continue;
		m->turn = i + 1;
		ask_budget(book, &m->budgets[i]);
		return true;
	}
	return false;
}

static bool ask_since(struct book *book, int64_t now_ms)
{
	static const char command[] = "*2\r\n$3\r\nGET\r\n$21\r\n" SCRIPT_SINCE "\r\n";

	_Static_assert(sizeof(SCRIPT_SINCE) - 1 == 21, "as the command says");
	if (!book->memories || now_ms < book->since_due_ms)
		return false;
	book->since_due_ms = now_ms + BOOK_SINCE_MS;
	book->asking = NULL;
	book->asks_since = true;
	server_ask(&book->server, command, sizeof(command) - 1);
	return true;
}

static void ask_next(struct book *book)
{
	const int64_t now_ms = clock_boot_ms();
	struct book_memory *m, *next;
	size_t left = book->memory_count;

	if (book->server.state != SERVER_READY || ask_since(book, now_ms))
		return;
	for (m = book->memories; m && left; m = next, left--) {
		next = m->next;
		if (quotas_are_lost(&m->quotas)) {
			free_memory(book, m);
			continue;
		}
		if (ask_of(book, m, now_ms)) {
			/* Its other budgets have their turn when the rest of the list has had its
			 * own. */
			DL_DELETE(book->memories, m);
			DL_APPEND(book->memories, m);
			return;
		}
		if (m->ending)
			free_memory(book, m);
	}
}

/* --- the server --- */

static void claim_all(struct book *book)
{
	struct book_memory *m;

	DL_FOREACH(book->memories, m)
	{
		for (size_t i = 0; i < m->count; i++)
			m->budgets[i].changed = true;
	}
}

static void on_ready(struct server *server, bool anew)
{
	struct book *book = container_of(server, struct book, server);

	if (anew) {
		book->on_server(book, NULL);
		claim_all(book);
	}
	ask_next(book);
}

static void on_away(struct server *server, const char *why)
{
	struct book *book = container_of(server, struct book, server);
	struct book_memory *m, *next;

	book->asking = NULL;
	DL_FOREACH_SAFE(book->memories, m, next)
	{
		for (size_t i = 0; i < m->count; i++)
			budget_away(&m->budgets[i]);
		if (m->ending)
			free_memory(book, m);
	}
	book->on_server(book, why);
}

static void note_since(struct book *book, int64_t since_ms)
{
	if (book->since_ms && book->since_ms != since_ms) {
		log_warn("the quota server has begun anew: it is told again what this host has "
		         "taken");
		claim_all(book);
	}
	book->since_ms = since_ms;
}

static void take_since(struct book *book, const struct reply *reply)
{
	uint64_t since_ms = 0;

	if (reply->kind == REPLY_TEXT)
		slice_to_u64(slice_from_string(reply->text), INT64_MAX, &since_ms);
	else if (reply->kind != REPLY_NOTHING)
		server_refuse(&book->server, "its answer to GET makes no sense");
	if (since_ms)
		note_since(book, (int64_t)since_ms);
	else
		claim_all(book); /* each question sets it anew */
}

static void on_answer(struct server *server, const struct reply *reply)
{
	struct book *book = container_of(server, struct book, server);
	struct budget *b = book->asking;
	struct script_answer answer;

	book->asking = NULL;
	if (book->asks_since) {
		take_since(book, reply);
	} else if (b && !script_read(&b->question, reply, &answer)) {
		server_refuse(server, "its answer about a budget makes no sense");
	} else if (b) {
		note_since(book, answer.since_ms);
		budget_answered(b, &answer, &book->clock, clock_boot_ms());
	}
}

/* --- bells and time --- */

static void beat(struct book *book)
{
	const int64_t now_ms = clock_boot_ms();
	struct book_memory *m;

	DL_FOREACH(book->memories, m)
	{
		if (!quotas_are_lost(&m->quotas))
			quotas_beat(&m->quotas, now_ms);
	}
	ask_next(book);
}

static void on_tick(struct loop_timer *timer)
{
	struct book *book = container_of(timer, struct book, tick);

	loop_timer_set(timer, BOOK_TICK_MS);
	beat(book);
}

static void on_bell(struct loop_io *io, unsigned events)
{
	struct book *book = container_of(io, struct book, bell_io);
	uint64_t rings;

	(void)events;
	if (read(book->bell, &rings, sizeof(rings)) == sizeof(rings))
		beat(book);
}

/* --- the owner's side --- */

int book_open(struct book *book, struct loop *loop)
{
	int rc;

	book->server.loop = loop;
	book->server.on_ready = on_ready;
	book->server.on_answer = on_answer;
	book->server.on_away = on_away;
	rc = loop_timer_open(loop, &book->tick, on_tick);
	if (!rc)
		rc = loop_io_open_level(loop, &book->bell_io, book->bell, LOOP_READ, on_bell);
	if (!rc)
		rc = server_open(&book->server);
	if (!rc)
		loop_timer_set(&book->tick, BOOK_TICK_MS);
	return rc;
}

void book_close(struct book *book)
{
	struct book_memory *m, *next;

	server_close(&book->server);
	loop_timer_close(&book->tick);
	loop_io_close(&book->bell_io);
	if (book->bell >= 0)
		close(book->bell);
	DL_FOREACH_SAFE(book->memories, m, next)
	free_memory(book, m);
}

/* Returns NULL with *rc. Closes fd. */
static struct book_memory *add_memory(struct book *book, uint64_t id, int fd, int *rc)
{
	struct book_memory *m = NULL;

	*rc = book->memory_count == BOOK_MEMORIES_MAX ? -ENOSPC : 0;
	if (!*rc) {
		m = calloc(1, sizeof(*m));
		*rc = m ? 0 : -ENOMEM;
	}
	if (*rc)
		close(fd);
	else
		*rc = quotas_open(&m->quotas, fd, -1);
	if (*rc) {
		free(m);
		return NULL;
	}
	m->id = id;
	DL_APPEND(book->memories, m);
	book->memory_count++;
	return m;
}

static void add_budget(
        struct book *book, struct book_memory *m, const struct message_quota_budget *budget)
{
	struct budget *b;

	for (size_t i = 0; i < m->count; i++)
		if (m->budgets[i].index == budget->index) {
			m->budgets[i].ending = false;
			return;
		}
	if (m->count == QUOTAS_MAX)
		return;
	b = &m->budgets[m->count++];
	budget_init(b, &m->quotas, budget, clock_boot_ms());
	if (book->server.told_away)
		budget_away(b);
}

int book_tell(struct book *book, const struct message_quota_budgets *budgets, int fd)
{
	struct book_memory *m = find(book, budgets->memory);
	int rc = 0;

	if (m)
		close(fd);
	else
		m = add_memory(book, budgets->memory, fd, &rc);
	if (!m)
		return rc;
	m->ending = false;
	for (uint32_t i = 0; i < budgets->count; i++)
		add_budget(book, m, &budgets->budgets[i]);
	beat(book);
	return 0;
}

void book_end(struct book *book, uint64_t memory)
{
	struct book_memory *m = find(book, memory);

	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++)
		budget_end(&m->budgets[i]);
	m->ending = true;
	if (book->server.told_away)
		free_memory(book, m);
	else
		ask_next(book);
}
