/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: hiredis calls the functions below for each part of an answer, and takes what
 * they return for an object. They allocate nothing: the object is always the one struct reply, and
 * a part that has no place in it makes the answer wrong. hiredis waits for as many bytes as a
 * length says; REPLY_BYTES_MAX ends that.
 */
#include "quota/reply.h"

#include <hiredis/hiredis.h>
#include <string.h>

/* The task that is being read is a list's item if it has a parent. */
static struct reply_reader *reader_of(const redisReadTask *task)
{
	return task->privdata;
}

static void *refuse(struct reply_reader *r)
{
	r->wrong = true;
	return NULL; /* hiredis ends the answer with an error */
}

static void *create_text(const redisReadTask *task, char *text, size_t n)
{
	struct reply_reader *r = reader_of(task);
	size_t kept = n < REPLY_TEXT_MAX ? n : REPLY_TEXT_MAX;

	if (task->parent)
		return refuse(r);
	r->reply.kind = task->type == REDIS_REPLY_STATUS  ? REPLY_STATUS
	                : task->type == REDIS_REPLY_ERROR ? REPLY_ERROR
	                                                  : REPLY_TEXT;
	for (size_t i = 0; i < kept; i++)
		r->reply.text[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
	r->reply.text[kept] = 0;
	return &r->reply;
}

static void *create_number(const redisReadTask *task, long long number)
{
	struct reply_reader *r = reader_of(task);

	if (!task->parent) {
		r->reply.kind = REPLY_NUMBER;
		r->reply.number = number;
		return &r->reply;
	}
	if (r->numbers >= r->reply.count)
		return refuse(r);
	r->reply.numbers[r->numbers++] = number;
	return &r->reply;
}

#if HIREDIS_MAJOR >= 1
typedef size_t list_length;
#else
typedef int list_length;
#endif

static void *create_list(const redisReadTask *task, list_length count)
{
	struct reply_reader *r = reader_of(task);

	if (task->parent || count > REPLY_NUMBERS_MAX)
		return refuse(r);
	r->reply.kind = REPLY_LIST;
	r->reply.count = (size_t)count;
	return &r->reply;
}

static void *create_nothing(const redisReadTask *task)
{
	struct reply_reader *r = reader_of(task);

	if (task->parent)
		return refuse(r);
	r->reply.kind = REPLY_NOTHING;
	return &r->reply;
}

static void free_object(void *object)
{
	(void)object; /* it is part of the reader */
}

static redisReplyObjectFunctions functions = {.createString = create_text,
        .createArray = create_list,
        .createInteger = create_number,
        .createNil = create_nothing,
        .freeObject = free_object};

static void begin(struct reply_reader *r)
{
	r->bytes = r->numbers = 0;
	r->wrong = false;
}

bool reply_open(struct reply_reader *r)
{
	*r = (struct reply_reader){.reader = redisReaderCreateWithFunctions(&functions)};
	if (!r->reader)
		return false;
	r->reader->privdata = r;
	r->reader->maxbuf = REPLY_BYTES_MAX;
	return true;
}

void reply_close(struct reply_reader *r)
{
	if (r->reader)
		redisReaderFree(r->reader);
	r->reader = NULL;
}

enum reply_status reply_feed(struct reply_reader *r, const void *p, size_t n)
{
	void *object = NULL;

	if (r->bytes == 0)
		r->reply = (struct reply){0};
	if (n > REPLY_BYTES_MAX - r->bytes)
		return REPLY_WRONG;
	r->bytes += n;
	if (redisReaderFeed(r->reader, p, n) != REDIS_OK ||
	        redisReaderGetReply(r->reader, &object) != REDIS_OK || r->wrong)
		return REPLY_WRONG;
	if (!object)
		return REPLY_MORE;
	/* One question is under way at a time, so nothing may follow its answer. */
	if (object != &r->reply || r->reader->pos != r->reader->len || r->numbers != r->reply.count)
		return REPLY_WRONG;
	begin(r);
	return REPLY_WHOLE;
}
