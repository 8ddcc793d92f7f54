/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lease is in use until it is given back: then vethguard-fetch is started with the arguments of
 * its credential and ".revoke=ID". Each lease that is being given back has its own struct sources,
 * because the sandbox's is gone by then; resolvers and hosts come from the configuration of that
 * time.
 */
#include "supervisor/config/source_lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "supervisor/config/private.h"
#include "supervisor/config/source_lease_file.h"
#include "supervisor/config/sources.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS 60000
#define HURRY_MS 3000

struct source_lease {
	struct source_lease *prev, *next;
	struct source_leases *book;
	uint64_t number; /* number of its file; 0: it has none */
	struct lease_words words;
	bool renewable, released;
	uint32_t lasts_s;
	int64_t retry_ms;
	struct loop_timer timer;
	/* Used while the lease is given back. */
	struct sources *sources;
	struct settings *settings;
	struct memory_bundle *trusted;
};

struct lease_sources { /* finds the lease that an answer belongs to */
	struct sources sources;
	struct source_lease *lease;
};

static void put_services(struct source_lease *l)
{
	if (l->sources) {
		sources_fini(l->sources);
		free(container_of(l->sources, struct lease_sources, sources));
	}
	l->sources = NULL;
	settings_put(l->settings);
	l->settings = NULL;
	memory_bundle_put(l->trusted);
	l->trusted = NULL;
}

static void lease_free(struct source_lease *l)
{
	DL_DELETE(l->book->all, l);
	loop_timer_close(&l->timer);
	put_services(l);
	lease_words_fini(&l->words);
	free(l);
}

bool source_leases_are_idle(const struct source_leases *book)
{
	const struct source_lease *l;

	DL_FOREACH(book->all, l)
	{
		if (l->released)
			return false;
	}
	return true;
}

static void tell_idle(struct source_leases *book)
{
	if (!book->hurried || !source_leases_are_idle(book))
		return;
	loop_timer_cancel(&book->hurry);
	book->on_idle(book);
}

/* Frees a lease that was given back, or has ended. */
static void end(struct source_lease *l)
{
	struct source_leases *book = l->book;

	if (l->number)
		lease_file_remove(book->directory, l->number);
	lease_free(l);
	tell_idle(book);
}

static void again(struct source_lease *l, const char *error)
{
	log_debug("lease %s cannot be given back yet: %s", l->words.id, error);
	if (clock_real_ms() + l->retry_ms >= l->words.ends_ms) {
		log_warn("lease %s was not given back and ends by itself: %s", l->words.id, error);
		end(l);
		return;
	}
	loop_timer_set(&l->timer, l->retry_ms);
	l->retry_ms = 2 * l->retry_ms < RETRY_MAX_MS ? 2 * l->retry_ms : RETRY_MAX_MS;
}

static void on_answer(struct sources *sources, uint64_t id, const struct source_result *result)
{
	struct source_lease *l = container_of(sources, struct lease_sources, sources)->lease;

	(void)id;
	if (result->fd >= 0)
		close(result->fd);
	if (!result->error) {
		log_info("lease %s was given back", l->words.id);
		l->sources->on_source = NULL;
		loop_timer_set(&l->timer, 0); /* not from within its own callback */
		return;
	}
	if (result->retry_s && (int64_t)result->retry_s * 1000 > l->retry_ms)
		l->retry_ms = (int64_t)result->retry_s * 1000;
	again(l, result->error);
}

static int make_services(struct source_lease *l)
{
	struct lease_sources *s = calloc(1, sizeof(*s));
	const char *culprit;
	int rc;

	if (!s)
		return -ENOMEM;
	s->lease = l;
	l->sources = &s->sources;
	sources_init(l->sources, l->book->loop, NULL, on_answer);
	l->sources->identity = l->words.identity;
	l->sources->mounts = l->book->mounts;
	l->sources->trusted = &l->trusted;
	l->settings = settings_of_services(l->book->config_path);
	l->sources->settings = l->settings;
	if (!l->settings)
		return -EINVAL;
	rc = memfd_trusted(&l->settings->config, l->book->trusted, &l->trusted, &culprit);
	return rc;
}

static void give_back(struct source_lease *l)
{
	char error[SOURCE_ERROR_MAX] = "", word[MESSAGE_LEASE_MAX + 16];
	struct source_secrets secrets;
	struct policy_credential c = l->words.credential;
	uint32_t retry_s = 0;
	int rc;

	put_services(l); /* those of the last try */
	rc = make_services(l);
	if (rc) {
		again(l, strerror(-rc));
		return;
	}
	snprintf(word, sizeof(word), ".revoke=%s", l->words.id);
	if (c.argc < POLICY_ARGV_MAX)
		c.argv[c.argc++] = slice_from_string(word);
	if (source_secrets_open(&l->words.identity, &c, &secrets, error)) {
		l->sources->fetches[0] =
		        source_fetch_start(l->sources, &c, &secrets, 0, 0, false, error, &retry_s);
		source_secrets_close(&secrets);
	}
	if (!l->sources->fetches[0])
		again(l, error);
}

static void on_time(struct loop_timer *timer)
{
	struct source_lease *l = container_of(timer, struct source_lease, timer);

	if (l->sources && !l->sources->on_source)
		end(l);
	else
		give_back(l);
}

static struct source_lease *lease_new(struct source_leases *book, const struct lease_words *words)
{
	struct source_lease *l = calloc(1, sizeof(*l));

	if (!l || loop_timer_open(book->loop, &l->timer, on_time) != 0 ||
	        lease_words_copy(&l->words, words) != 0) {
		if (l)
			loop_timer_close(&l->timer);
		free(l);
		log_warn("no memory for lease %s: it ends by itself", words->id);
		return NULL;
	}
	l->book = book;
	l->retry_ms = RETRY_FIRST_MS;
	DL_APPEND(book->all, l);
	return l;
}

static void save(struct source_lease *l)
{
	int rc;

	if (l->book->directory < 0)
		return;
	if (!l->number)
		l->number = ++l->book->last_number;
	rc = lease_file_write(l->book->directory, l->number, &l->words);
	if (rc)
		log_warn("lease %s cannot be noted, so the next daemon will not know it: %s",
		        l->words.id, strerror(-rc));
}

struct source_lease *source_lease_new(struct source_leases *book,
        const struct policy_credential *credential, const struct identity *identity, const char *id,
        uint32_t lasts_s, bool renewable)
{
	struct lease_words words = {.credential = *credential,
	        .identity = *identity,
	        .ends_ms = clock_real_ms() + (int64_t)lasts_s * 1000};
	struct source_lease *l;

	snprintf(words.id, sizeof(words.id), "%s", id);
	l = lease_new(book, &words);
	if (!l)
		return NULL;
	l->lasts_s = lasts_s;
	l->renewable = renewable;
	save(l);
	return l;
}

const char *source_lease_id(const struct source_lease *l)
{
	return l ? l->words.id : "";
}

uint32_t source_lease_lasts_s(const struct source_lease *l)
{
	return l ? l->lasts_s : 0;
}

bool source_lease_is_renewable(const struct source_lease *l)
{
	return l && l->renewable;
}

void source_lease_renewed(struct source_lease *l, uint32_t lasts_s, bool renewable)
{
	if (!l)
		return;
	l->renewable = renewable;
	l->words.ends_ms = clock_real_ms() + (int64_t)lasts_s * 1000;
	save(l);
}

void source_lease_release(struct source_lease *l, int64_t delay_ms)
{
	if (!l)
		return;
	l->released = true;
	loop_timer_set(&l->timer, l->book->hurried ? 0 : delay_ms);
}

void source_leases_init(struct source_leases *book, struct loop *loop)
{
	*book = (struct source_leases){.loop = loop, .directory = -1, .mounts = -1};
}

static void recover_one(void *context, uint64_t number, struct lease_words *words)
{
	struct source_leases *book = context;
	struct source_lease *l = lease_new(book, words);

	if (!l)
		return;
	l->number = number;
	source_lease_release(l, 0);
}

void source_leases_recover(struct source_leases *book)
{
	if (book->directory >= 0)
		lease_files_take(book->directory, &book->last_number, recover_one, book);
}

static void on_hurry_over(struct loop_timer *timer)
{
	struct source_leases *book = container_of(timer, struct source_leases, hurry);

	log_warn("leases of the sandbox could not be given back in time: they end by themselves");
	book->on_idle(book);
}

void source_leases_hurry(struct source_leases *book)
{
	struct source_lease *l;

	if (book->hurried)
		return;
	book->hurried = true;
	DL_FOREACH(book->all, l)
	{
		if (l->released && !l->sources)
			loop_timer_set(&l->timer, 0);
	}
	if (loop_timer_open(book->loop, &book->hurry, on_hurry_over) == 0)
		loop_timer_set(&book->hurry, HURRY_MS);
}

void source_leases_fini(struct source_leases *book)
{
	struct source_lease *l, *next;

	DL_FOREACH_SAFE(book->all, l, next)
	lease_free(l);
	loop_timer_close(&book->hurry);
	if (book->directory >= 0)
		close(book->directory);
	book->directory = -1;
}
