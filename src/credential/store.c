/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one slot per credential of the policy. A slot has at most one value, at most
 * one open question, the callers that wait for its answer, and after a refusal the sentence and the
 * time before which the keeper is not asked again. A task at the end of the loop's turn tells
 * waiting callers, each at most once. The list is taken off the slot first, so that a caller that
 * asks again from its callback waits for the next turn.
 *
 * A value's expiry is on CLOCK_BOOTTIME, because a token ages while the machine sleeps. The timer
 * that wipes expired values stands still during sleep (the jail permits no call to make another
 * kind), so each use checks the clock itself. The time for an answer does not count sleep: nobody
 * can work on it then.
 */
#include "vethguard/credential/store.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "credential/store_private.h"
#include "credential/value.h"

/* How much longer than the source's own timeout an answer may take. The keeper reports that timeout
 * itself; a keeper that does not is stuck. */
#define ANSWER_GRACE_MS 5000
#define SOURCE_TIMEOUT_MS 10000 /* for a source without its own timeout */
#define RENEW_RETRY_MS 5000     /* pause before another try, after the keeper was lost */

void credential_wait_cancel(struct credential_wait *wait)
{
	list_remove(&wait->place);
}

/* Takes the first waiting caller off the list; NULL: none. */
static struct credential_wait *take_waiting(struct list *waiting)
{
	struct list *first = waiting->next;

	if (list_is_empty(waiting))
		return NULL;
	list_remove(first);
	return container_of(first, struct credential_wait, place);
}

static void drop_value(struct slot *slot)
{
	credential_value_release(slot->value);
	slot->value = NULL;
}

void store_plan_expiry(struct credential_store *store)
{
	int64_t first = 0;

	for (uint32_t i = 0; i < store->count; i++) {
		const struct slot *slot = &store->slots[i];

		if (slot->value && slot->expires_ms > 0 && (first == 0 || slot->expires_ms < first))
			first = slot->expires_ms;
	}
	if (first > 0) {
		int64_t now = clock_boot_ms();

		loop_timer_set(&store->expiry, first > now ? first - now : 0);
	} else {
		loop_timer_cancel(&store->expiry);
	}
}

static bool is_fresh(const struct slot *slot)
{
	return slot->value && (slot->expires_ms == 0 || clock_boot_ms() < slot->expires_ms);
}

static void on_expiry(struct loop_timer *timer)
{
	struct credential_store *store = container_of(timer, struct credential_store, expiry);

	for (uint32_t i = 0; i < store->count; i++)
		if (store->slots[i].value && !store->slots[i].due && !is_fresh(&store->slots[i]))
			drop_value(&store->slots[i]);
	store_plan_expiry(store);
}

static void note_use(const struct credential_store *store, struct slot *slot)
{
	slot->uses++;
	slot->last_used_ms = loop_now_ms(store->loop);
}

static void tell_slot(const struct credential_store *store, struct slot *slot)
{
	struct credential_value *value = slot->value;
	struct credential_wait *wait;
	struct list waiting;
	char error[STORE_ERROR_MAX];

	slot->due = false;
	memcpy(error, slot->error, sizeof(error));
	if (value)
		credential_value_retain(value);
	list_move(&slot->waiting, &waiting);
	while ((wait = take_waiting(&waiting))) {
		if (value)
			note_use(store, slot);
		wait->on_value(wait, value, value ? NULL : error);
	}
	credential_value_release(value);
}

static void on_tell(struct loop_task *task)
{
	struct credential_store *store = container_of(task, struct credential_store, tell);

	for (uint32_t i = 0; i < store->count; i++)
		if (store->slots[i].due)
			tell_slot(store, &store->slots[i]);
}

static void make_due(struct credential_store *store, struct slot *slot)
{
	slot->due = true;
	loop_task_queue(store->loop, &store->tell);
}

void store_refuse(struct credential_store *store, struct slot *slot, const char *error)
{
	if (slot->renewing && is_fresh(slot) && list_is_empty(&slot->waiting)) {
		slot->asked = slot->renewing = false;
		slot->renew_ms = clock_boot_ms() + RENEW_RETRY_MS;
		return;
	}
	drop_value(slot);
	slot->asked = slot->renewing = slot->passing = false;
	slot->retry_ms = loop_now_ms(store->loop) + STORE_RETRY_MS;
	snprintf(slot->error, sizeof(slot->error), "%s", error);
	make_due(store, slot);
}

static void plan_patience(struct credential_store *store)
{
	int64_t first = 0;

	for (uint32_t i = 0; i < store->count; i++) {
		const struct slot *slot = &store->slots[i];

		if (slot->asked && (first == 0 || slot->answer_by_ms < first))
			first = slot->answer_by_ms;
	}
	if (first > 0)
		loop_timer_set(&store->patience, first - loop_now_ms(store->loop) + 1);
}

static void await_answer(struct credential_store *store, uint32_t credential)
{
	struct policy_credential spec;

	policy_credential(store->policy, credential, &spec);
	store->slots[credential].answer_by_ms =
	        loop_now_ms(store->loop) + ANSWER_GRACE_MS +
	        (spec.timeout_ms ? spec.timeout_ms : SOURCE_TIMEOUT_MS);
	plan_patience(store);
}

static void on_patience(struct loop_timer *timer)
{
	struct credential_store *store = container_of(timer, struct credential_store, patience);
	int64_t now_ms = loop_now_ms(store->loop);

	for (uint32_t i = 0; i < store->count; i++)
		if (store->slots[i].asked && store->slots[i].answer_by_ms <= now_ms)
			store_refuse(store, &store->slots[i],
			        "The keeper of credentials does not answer.");
	plan_patience(store);
}

void store_drop_slot(struct slot *slot)
{
	drop_value(slot);
	secret_free(&slot->jar);
	while (take_waiting(&slot->waiting))
		;
}

struct slot *store_slots_new(uint32_t count)
{
	struct slot *slots = calloc(count ? count : 1, sizeof(*slots));

	for (uint32_t i = 0; slots && i < count; i++)
		list_init(&slots[i].waiting);
	return slots;
}

struct credential_store *credential_store_new(
        struct loop *loop, const struct policy *policy, credential_ask ask, void *context)
{
	uint32_t count = policy_credential_count(policy);
	struct credential_store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	store->slots = store_slots_new(count);
	if (!store->slots) {
		free(store);
		return NULL;
	}
	store->loop = loop;
	store->policy = policy;
	store->ask = ask;
	store->context = context;
	store->tell.run = on_tell;
	store->count = count;
	store_sign_init(store);
	if (loop_timer_open(loop, &store->expiry, on_expiry) < 0 ||
	        loop_timer_open(loop, &store->patience, on_patience) < 0) {
		loop_timer_close(&store->expiry);
		free(store->slots);
		free(store);
		return NULL;
	}
	return store;
}

void credential_store_free(struct credential_store *store)
{
	if (!store)
		return;
	loop_timer_close(&store->expiry);
	loop_timer_close(&store->patience);
	loop_task_cancel(store->loop, &store->tell);
	store_sign_fini(store);
	for (uint32_t i = 0; i < store->count; i++)
		store_drop_slot(&store->slots[i]);
	placeholders_fini(&store->placeholders);
	free(store->slots);
	free(store);
}

void store_ask(struct credential_store *store, uint32_t credential, bool renew)
{
	struct slot *slot = &store->slots[credential];

	if (slot->asked)
		return;
	slot->asked = true;
	slot->asked_epoch = slot->epoch;
	slot->renewing = renew;
	if (store->ask(store->context, credential, renew) < 0)
		store_refuse(store, slot, "The keeper of credentials cannot be asked.");
	else
		await_answer(store, credential);
}

struct credential_value *credential_store_get(
        struct credential_store *store, uint32_t credential, struct credential_wait *wait)
{
	struct slot *slot;

	if (credential >= store->count)
		return NULL;
	slot = &store->slots[credential];
	if (!slot->guessed && is_fresh(slot)) {
		if (slot->renew_ms && clock_boot_ms() >= slot->renew_ms)
			store_ask(store, credential, true);
		note_use(store, slot);
		return slot->value;
	}
	credential_wait_cancel(wait);
	list_append(&slot->waiting, &wait->place);
	if (slot->guessed) {
		store_refuse(store, slot,
		        "A response stopped in the middle of this credential: somebody may be "
		        "guessing it.");
		return NULL;
	}
	if (slot->asked || slot->due)
		return NULL;
	if (loop_now_ms(store->loop) < slot->retry_ms) {
		drop_value(slot);
		make_due(store, slot);
		return NULL;
	}
	store_ask(store, credential, false);
	return NULL;
}

bool credential_store_waited(struct credential_store *store, uint32_t credential, int times)
{
	bool before;

	if (credential >= store->count || times <= 0)
		return false;
	before = store->slots[credential].guessed;
	store->slots[credential].guessed = true;
	return !before;
}

bool credential_store_is_guessed(const struct credential_store *store, uint32_t credential)
{
	return credential < store->count && store->slots[credential].guessed;
}

/* Takes the reference to made. Returns the same value with the jar, or NULL with *error set. */
static struct credential_value *with_jar(
        struct credential_value *made, struct slice jar, const char **error)
{
	struct credential_value *both = value_with_jar(made, jar);

	credential_value_release(made);
	*error = both ? NULL : "There is no memory for the credential.";
	return both;
}

void credential_store_answer(struct credential_store *store, uint32_t credential,
        struct slice value, uint32_t ttl_ms, uint32_t renew_ms, const char *error)
{
	struct credential_value *made = NULL;
	struct slot *slot;

	if (credential < store->count && store->slots[credential].stale) {
		store->slots[credential].stale--;
		return;
	}
	if (credential >= store->count || !store->slots[credential].asked) {
		log_warn("an answer about a credential that was not asked for is ignored");
		return;
	}
	slot = &store->slots[credential];
	if (!error)
		made = value_new(store->policy, credential, value, &error);
	if (made && slot->jar.n)
		made = with_jar(made, secret_slice(&slot->jar), &error);
	if (!made) {
		store_refuse(store, slot, error);
		return;
	}
	drop_value(slot);
	slot->asked = slot->renewing = false;
	slot->value = made;
	made->epoch = slot->asked_epoch;
	slot->retry_ms = 0;
	slot->expires_ms = ttl_ms > 0 ? clock_boot_ms() + ttl_ms : 0;
	slot->renew_ms = renew_ms > 0 ? clock_boot_ms() + renew_ms : 0;
	if (slot->passing)
		slot->expires_ms = clock_boot_ms();
	slot->passing = false;
	make_due(store, slot);
	store_plan_expiry(store);
}

void credential_store_fail_all(struct credential_store *store, const char *error)
{
	for (uint32_t i = 0; i < store->count; i++)
		if (store->slots[i].asked)
			store_refuse(store, &store->slots[i], error);
	store_sign_fail(store, error);
}

void store_forget(struct slot *slot)
{
	slot->passing = slot->asked;
	slot->expires_ms = clock_boot_ms();
	if (!slot->due)
		drop_value(slot);
}

void credential_store_ask_again(struct credential_store *store)
{
	for (uint32_t i = 0; i < store->count; i++) {
		struct slot *slot = &store->slots[i];

		slot->retry_ms = 0;
		slot->stale = 0;
		if (!slot->asked)
			continue;
		slot->asked_epoch = slot->epoch;
		if (store->ask(store->context, i, slot->renewing) < 0)
			store_refuse(store, slot, "The keeper of credentials cannot be asked.");
		else
			await_answer(store, i);
	}
	store_sign_again(store);
}

struct credential_value *credential_store_held(
        const struct credential_store *store, uint32_t credential)
{
	return credential < store->count ? store->slots[credential].value : NULL;
}
