/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the store from outside: another policy, an operator who rotates or revokes a
 * credential, and a login that gives a token. */
#include "credential/store_private.h"

#include <errno.h>
#include <stdlib.h>

#include "credential/value.h"
#include "vethguard/base/clock.h"

int credential_store_renumber(struct credential_store *store, const uint32_t *map, uint32_t count)
{
	struct slot *old = store->slots, *slots = store_slots_new(count);
	uint32_t before = store->count;

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct slot *from = map[i] < before ? &old[map[i]] : NULL;

		if (!from)
			continue;
		slots[i] = *from;
		list_move(&from->waiting, &slots[i].waiting);
		if (slots[i].value)
			slots[i].value->credential = i;
		from->value = NULL;
		from->jar = (struct secret){0};
		store_forget(&slots[i]);
	}
	placeholders_renumber(&store->placeholders, map, count);
	store->slots = slots;
	store->count = count;
	for (uint32_t i = 0; i < before; i++)
		store_drop_slot(&old[i]);
	free(old);
	store_plan_expiry(store);
	return 0;
}

void credential_store_rotate(struct credential_store *store, uint32_t credential)
{
	struct slot *slot;
	bool had;

	if (credential >= store->count)
		return;
	slot = &store->slots[credential];
	had = slot->value != NULL;
	slot->epoch++;
	slot->retry_ms = 0;
	secret_free(&slot->jar);
	store_forget(slot);
	store_plan_expiry(store);
	if (had)
		store_ask(store, credential, false);
}

void credential_store_revoke(struct credential_store *store, uint32_t credential)
{
	struct slot *slot;

	if (credential >= store->count)
		return;
	slot = &store->slots[credential];
	slot->epoch++;
	slot->stale += slot->asked;
	slot->renewing = false;
	secret_free(&slot->jar);
	store_refuse(store, slot, CREDENTIAL_REVOKED);
	store_plan_expiry(store);
}

void credential_store_usage(const struct credential_store *store, uint32_t credential,
        uint64_t *uses, uint64_t *last_used_ms)
{
	*uses = *last_used_ms = 0;
	if (credential >= store->count || !store->slots[credential].uses)
		return;
	*uses = store->slots[credential].uses;
	*last_used_ms = (uint64_t)(clock_real_ms() - loop_now_ms(store->loop) +
	                           store->slots[credential].last_used_ms);
}

void credential_store_on_seal(struct credential_store *store, credential_seal seal)
{
	store->seal = seal;
}

/* Puts a value with one more token in the place of the present one. */
static int seal_here(
        struct credential_store *store, uint32_t credential, const struct jar_token *token)
{
	struct slot *slot = &store->slots[credential];
	struct credential_value *made;
	struct secret jar = {0};
	const char *error;
	int rc = 0;

	if (slot->value->jar.n)
		rc = secret_copy(&jar, slot->value->jar.p, slot->value->jar.n);
	if (rc == 0)
		rc = jar_add(&jar, token);
	if (rc == 0) {
		made = value_new(store->policy, credential, secret_slice(&jar), &error);
		rc = made ? 0 : -ENOMEM;
	}
	if (rc == 0) {
		made->epoch = slot->value->epoch;
		credential_value_release(slot->value);
		slot->value = made;
	}
	secret_free(&jar);
	return rc;
}

/* docker-registry: adds the token to the slot's jar, which no other worker gets. Returns 0 or
 * -errno. */
static int seal_in_slot(struct slot *slot, const struct jar_token *token)
{
	struct credential_value *made;
	int rc = jar_add(&slot->jar, token);

	if (rc < 0 || !slot->value)
		return rc;
	made = value_with_jar(slot->value, secret_slice(&slot->jar));
	if (!made)
		return -ENOMEM;
	credential_value_release(slot->value);
	slot->value = made;
	return 0;
}

int credential_store_seal(struct credential_store *store, uint32_t credential,
        const struct credential_value *used, const struct jar_token *token)
{
	struct policy_credential spec;
	int rc = 0;

	if (credential >= store->count)
		return -EINVAL;
	if (used->epoch != store->slots[credential].epoch)
		return -ESTALE;
	policy_credential(store->policy, credential, &spec);
	if (spec.inject == POLICY_INJECT_DOCKER_REGISTRY)
		return seal_in_slot(&store->slots[credential], token);
	if (!store->seal)
		return -EINVAL;
	/* A value that was forgotten, because the policy changes, comes from the keeper. */
	if (store->slots[credential].value)
		rc = seal_here(store, credential, token);
	return rc ? rc : store->seal(store->context, spec.name, token);
}
