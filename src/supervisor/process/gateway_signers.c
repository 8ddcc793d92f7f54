/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public keys of the signers of session tokens. They come from files, looked at every
 * GATEWAY_LOOK_MS, or from URLs, asked as often as the configuration says, and go to the gateway,
 * which verifies tokens. A file or answer that cannot be used changes nothing: the keys before it
 * stay.
 *
 * The gateway asks about tokens that it has verified. Its question is passed to the owner of the
 * sessions, and the answer is dropped if it belongs to an earlier gateway.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/config/bundle_store.h"
#include "supervisor/config/key_fetch.h"
#include "supervisor/os/operator_file.h"
#include "supervisor/process/gateway.h"
#include "supervisor/supervisor.h"

#define WHY_MAX (PATH_MAX + 256)

static uint8_t buffer[MESSAGE_BYTES_MAX];

/* --- a key set --- */

/* Reads a file of at most KEY_SET_BYTES_MAX. Returns its length, KEY_SET_BYTES_MAX + 1 for a longer
 * one, or -errno. */
static ssize_t read_file(int fd, char *out)
{
	size_t got = 0;
	ssize_t n = 1;

	while (n > 0 && got <= KEY_SET_BYTES_MAX) {
		n = read(fd, out + got, KEY_SET_BYTES_MAX + 1 - got);
		if (n < 0 && errno != EINTR)
			return -errno;
		got += n > 0 ? (size_t)n : 0;
		n = n < 0 ? 1 : n;
	}
	return (ssize_t)got;
}

/* Takes the keys of an open file. Returns true if they differ from those before. *usable becomes
 * true if the file is a usable set; usable may be NULL. */
static bool take_keys(struct token_signer *s, const struct config_signer *config, int fd,
        const char *when, bool *usable)
{
	char why[KEY_SET_WHY_MAX] = "no memory";
	struct key_set *fresh = calloc(1, sizeof(*fresh));
	char *text = malloc(KEY_SET_BYTES_MAX + 1);
	ssize_t n = fresh && text ? read_file(fd, text) : -ENOMEM;
	bool changed = false;

	if (n >= 0 && key_set_read(fresh, slice_of(text, (size_t)n), why) == 0) {
		changed = !key_set_equals(fresh, &s->keys);
		if (usable)
			*usable = true;
		if (changed) {
			key_set_fini(&s->keys);
			s->keys = *fresh;
			log_info("signer %s has %zu keys", config->name, s->keys.count);
		} else {
			key_set_fini(fresh);
		}
	} else {
		log_error("gateway.signers: the keys of %s, %s, cannot be used: %s; %s",
		        config->name, config->keys, n < 0 ? strerror((int)-n) : why, when);
	}
	free(fresh);
	free(text);
	return changed;
}

/* --- URLs --- */

static void on_fetched(void *context, const struct key_fetched *fetched)
{
	struct signer_fetch *f = context;
	struct gateway_life *life = &f->supervisor->gateway;
	const struct config_signer *config = &life->config.signers[f->index];
	struct token_signer *s = life->signers.items[f->index];
	const char *when = s->keys.count ? "the ones before stay" : "its tokens are refused";
	int64_t wait_ms = (int64_t)config->refresh_s * 1000;
	bool usable = false;

	f->over = true;
	if (!fetched->error) {
		life->signers.quiet[f->index] = false;
		if (!fetched->same && take_keys(s, config, fetched->fd, when, &usable))
			gateway_signers_send(f->supervisor);
		/* Without an ETag, an unusable set is sent again, and its fault logged again. */
		if (!fetched->same)
			snprintf(f->etag, sizeof(f->etag), "%s", usable ? fetched->etag : "");
	} else {
		if (!life->signers.quiet[f->index])
			log_error("gateway.signers: the keys of %s: %s; %s", config->name,
			        fetched->error, when);
		life->signers.quiet[f->index] = true;
		wait_ms = wait_ms < GATEWAY_KEYS_AGAIN_MS ? wait_ms : GATEWAY_KEYS_AGAIN_MS;
	}
	f->again_ms = loop_now_ms(f->supervisor->loop) + wait_ms;
}

static void ask(struct supervisor *sv, size_t i, bool now)
{
	struct signer_fetch *f = &sv->gateway.signers.fetches[i];

	if (f->over) {
		key_fetch_free(f->running);
		f->running = NULL;
		f->over = false;
	}
	if (f->running || (!now && loop_now_ms(sv->loop) < f->again_ms))
		return;
	f->supervisor = sv;
	f->index = i;
	f->running = key_fetch_start(&sv->leases, KEY_FETCH_SET, sv->gateway.config.signers[i].keys,
	        f->etag, on_fetched, f);
}

/* --- files --- */

/* Returns true if the keys have changed. bundles: the directory of all bundles' stores. */
static bool look_at(struct gateway_signers *all, const struct config_signer *config, size_t i,
        const char *bundles)
{
	struct token_signer *s = all->items[i];
	const char *when = s->keys.count ? "the ones before stay" : "its tokens are refused";
	char why[WHY_MAX], path[PATH_MAX];
	struct stat st;
	bool changed = false;
	const int of_bundle = bundle_store_path(bundles, config->keys, path, sizeof(path));
	int fd = operator_file_open(
	        "gateway.signers.keys", of_bundle ? path : config->keys, false, why, sizeof(why));

	/* The bundle has no such key set any more, or is not in force: its keys end. */
	if (fd == -ENOENT && of_bundle && s->keys.count) {
		key_set_fini(&s->keys);
		memset(&all->files[i], 0, sizeof(all->files[i]));
		when = "its tokens are refused";
		changed = true;
	}
	if (fd < 0) {
		if (!all->quiet[i] || changed)
			log_error("%s; %s", why, when);
		all->quiet[i] = true;
		return changed;
	}
	all->quiet[i] = false;
	if (fstat(fd, &st) == 0 && !gateway_file_is_same(&st, &all->files[i])) {
		all->files[i] = st;
		changed = take_keys(s, config, fd, when, NULL);
	}
	close(fd);
	return changed;
}

bool gateway_signers_look(struct supervisor *sv, bool now)
{
	struct gateway_life *life = &sv->gateway;
	bool changed = false;

	for (size_t i = 0; i < life->signers.count; i++)
		if (life->config.signers[i].refresh_s)
			ask(sv, i, now);
		else
			changed |=
			        look_at(&life->signers, &life->config.signers[i], i, sv->bundles);
	return changed;
}

void gateway_signers_free(struct supervisor *sv)
{
	struct gateway_signers *all = &sv->gateway.signers;

	while (all->count) {
		struct token_signer *s = all->items[--all->count];

		key_fetch_free(all->fetches[all->count].running);
		all->fetches[all->count] = (struct signer_fetch){.running = NULL};
		key_set_fini(&s->keys);
		free(s);
	}
	memset(all->files, 0, sizeof(all->files));
}

int gateway_signers_configure(struct supervisor *sv)
{
	struct gateway_life *life = &sv->gateway;

	gateway_signers_free(sv);
	for (size_t i = 0; i < life->config.signer_count; i++) {
		struct token_signer *s = calloc(1, sizeof(*s));

		if (!s)
			return -ENOMEM;
		s->terms = life->config.signers[i].terms;
		life->signers.quiet[i] = false;
		life->signers.items[life->signers.count++] = s;
	}
	gateway_signers_look(sv, true);
	return 0;
}

/* --- the gateway --- */

static void fill(struct message_gateway_signer *m, const struct token_signer *s)
{
	m->issuer = slice_from_string(s->terms.issuer);
	m->audience_count = s->terms.audience_count;
	for (size_t i = 0; i < m->audience_count; i++)
		m->audiences[i] = slice_from_string(s->terms.audiences[i]);
	m->algorithms = s->terms.algorithms;
	m->lifetime_s = s->terms.lifetime_s;
	m->callbacks = s->terms.callbacks;
	m->key_count = s->keys.count;
	for (size_t i = 0; i < m->key_count; i++) {
		const struct public_key *k = &s->keys.keys[i];

		m->keys[i] = (struct message_public_key){k->algorithm, slice_of(k->id, k->id_n),
		        slice_of(k->bytes, k->n), k->exponent};
	}
}

void gateway_signers_send(struct supervisor *sv)
{
	const struct gateway_signers *all = &sv->gateway.signers;
	static struct message_gateway_signer m;
	uint32_t i = 0;

	if (!role_runs(&sv->gateway.role))
		return;
	do {
		m = (struct message_gateway_signer){.index = i, .count = (uint32_t)all->count};
		if (all->count)
			fill(&m, all->items[i]);
		role_send(&sv->gateway.role, buffer,
		        message_gateway_signer_encode(
		                buffer, sizeof(buffer), MESSAGE_GATEWAY_SIGNER, 0, &m),
		        NULL, 0);
	} while (++i < all->count);
}

int gateway_on_token(struct supervisor *sv, struct ipc_message *message)
{
	struct gateway_life *life = &sv->gateway;
	const struct gateway_question q = {life->starts, message->head.id};
	struct message_gateway_token m;

	if (message_gateway_token_decode(&message->body, &m) != 0)
		return -EBADMSG;
	if (life->on_token)
		life->on_token(life->token_owner, &q, m.text, &m.source);
	else
		gateway_decide(
		        sv, &q, &(struct message_gateway_verdict){MESSAGE_TOKEN_LATER, 0, 0});
	return 0;
}

void gateway_decide(struct supervisor *sv, const struct gateway_question *q,
        const struct message_gateway_verdict *verdict)
{
	struct gateway_life *life = &sv->gateway;

	if (q->starts != life->starts || !role_runs(&life->role))
		return;
	role_send(&life->role, buffer,
	        message_gateway_verdict_encode(
	                buffer, sizeof(buffer), MESSAGE_GATEWAY_VERDICT, q->id, verdict),
	        NULL, 0);
}
