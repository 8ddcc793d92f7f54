/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the programs. What a decoder takes, its encoder must write back to the very same
 * bytes: there is one encoding of every message. A byte of the head picks the decoder, as the
 * receiving program's table would.
 */
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t again[MESSAGE_BYTES_MAX];

static void compare(const uint8_t *data, size_t size, size_t n)
{
	if (n != size || memcmp(data, again, n) != 0) {
		fprintf(stderr, "a message of %zu bytes was written back as %zu bytes\n", size, n);
		abort();
	}
}

#define TRY(name)                                                                                 \
	static void try_##name(const uint8_t *data, size_t size, const struct message_head *head, \
	        struct reader body)                                                               \
	{                                                                                         \
		static struct message_##name m;                                                   \
		if (message_##name##_decode(&body, &m) != 0)                                      \
			return;                                                                   \
		compare(data, size,                                                               \
		        message_##name##_encode(again, sizeof(again), head->type, head->id, &m)); \
	}
TRY(text)
TRY(ca)
TRY(credential_get)
TRY(credential_seal)
TRY(credential)
TRY(keeper_sandbox)
TRY(keeper_root)
TRY(keeper_worker)
TRY(keeper_ca_ask)
TRY(keeper_ca)
TRY(source_open)
TRY(source)
TRY(fetch)
TRY(fetched)
TRY(fetch_failed)
TRY(credential_ask)
TRY(worker_credentials)
TRY(keeper_credentials)
TRY(token_start)
TRY(token_sign)
TRY(token_signature)
TRY(token_key_sign)
TRY(key_token)
TRY(credential_sign)
TRY(quota_start)
TRY(quota_budgets)
TRY(quota_end)
TRY(recorder_start)
TRY(recorder_sandbox)
TRY(recorder_ring)
TRY(recorder_event)
TRY(sandbox)
TRY(status)
TRY(summary)
TRY(run_start)
TRY(names)
TRY(role)
TRY(run_ready)
TRY(upgrade)
TRY(worker_pause)
TRY(worker_resume)
TRY(worker_retire)
TRY(worker_retired)
TRY(worker_stats)
TRY(listen)
TRY(reach)
TRY(reached)
TRY(call)
TRY(visit)
TRY(gateway_signer)
TRY(gateway_token)
TRY(gateway_verdict)
TRY(worker_limits)
TRY(worker_team)
TRY(worker_ask)
TRY(worker_answer)
TRY(worker_grant)
TRY(worker_associate)
TRY(worker_associated)
TRY(worker_proposal)
TRY(worker_proposed)

static void try_worker_start(
        const uint8_t *data, size_t size, const struct message_head *head, struct reader body)
{
	struct message_worker_start m;

	if (message_worker_start_decode(&body, &m) != 0)
		return;
	compare(data, size,
	        message_worker_start_encode(again, sizeof(again), head->type, head->id, &m));
	message_worker_start_fini(&m);
}

static void (*const tries[])(
        const uint8_t *, size_t, const struct message_head *, struct reader) = {
        [MESSAGE_STOPPED] = try_text,
        [MESSAGE_FAILED] = try_text,
        [MESSAGE_WORKER_PAUSE] = try_worker_pause,
        [MESSAGE_WORKER_RESUME] = try_worker_resume,
        [MESSAGE_WORKER_RETIRE] = try_worker_retire,
        [MESSAGE_WORKER_RETIRED] = try_worker_retired,
        [MESSAGE_WORKER_STATS] = try_worker_stats,
        [MESSAGE_WORKER_LISTEN] = try_listen,
        [MESSAGE_WORKER_REACH] = try_reach,
        [MESSAGE_WORKER_REACHED] = try_reached,
        [MESSAGE_WORKER_CALL] = try_call,
        [MESSAGE_WORKER_VISIT] = try_visit,
        [MESSAGE_WORKER_LIMITS] = try_worker_limits,
        [MESSAGE_WORKER_ASK] = try_worker_ask,
        [MESSAGE_WORKER_ANSWER] = try_worker_answer,
        [MESSAGE_WORKER_GRANT] = try_worker_grant,
        [MESSAGE_WORKER_ASSOCIATE] = try_worker_associate,
        [MESSAGE_WORKER_ASSOCIATED] = try_worker_associated,
        [MESSAGE_WORKER_PROPOSAL] = try_worker_proposal,
        [MESSAGE_WORKER_PROPOSED] = try_worker_proposed,
        [MESSAGE_WORKER_TEAM] = try_worker_team,
        [MESSAGE_RECORDER_STALLED] = try_text,
        [MESSAGE_WORKER_START] = try_worker_start,
        [MESSAGE_CA] = try_ca,
        [MESSAGE_CREDENTIAL_GET] = try_credential_get,
        [MESSAGE_CREDENTIAL_SEAL] = try_credential_seal,
        [MESSAGE_CREDENTIAL] = try_credential,
        [MESSAGE_KEEPER_SANDBOX] = try_keeper_sandbox,
        [MESSAGE_KEEPER_ROOT] = try_keeper_root,
        [MESSAGE_KEEPER_WORKER] = try_keeper_worker,
        [MESSAGE_KEEPER_CA_ASK] = try_keeper_ca_ask,
        [MESSAGE_KEEPER_CA] = try_keeper_ca,
        [MESSAGE_SOURCE_OPEN] = try_source_open,
        [MESSAGE_SOURCE] = try_source,
        [MESSAGE_FETCH] = try_fetch,
        [MESSAGE_FETCHED] = try_fetched,
        [MESSAGE_FETCH_FAILED] = try_fetch_failed,
        [MESSAGE_WORKER_CREDENTIAL] = try_credential_ask,
        [MESSAGE_WORKER_CREDENTIALS] = try_worker_credentials,
        [MESSAGE_KEEPER_CREDENTIAL] = try_credential_ask,
        [MESSAGE_KEEPER_CREDENTIALS] = try_keeper_credentials,
        [MESSAGE_TOKEN_START] = try_token_start,
        [MESSAGE_TOKEN_SIGN] = try_token_sign,
        [MESSAGE_TOKEN_SIGNATURE] = try_token_signature,
        [MESSAGE_CREDENTIAL_SIGN] = try_credential_sign,
        [MESSAGE_CREDENTIAL_SIGNED] = try_token_signature,
        [MESSAGE_TOKEN_KEY_SIGN] = try_token_key_sign,
        [MESSAGE_KEEPER_KEY_TOKEN] = try_key_token,
        [MESSAGE_KEEPER_KEY_TOKEN_LATE] = try_key_token,
        [MESSAGE_QUOTA_START] = try_quota_start,
        [MESSAGE_QUOTA_BUDGETS] = try_quota_budgets,
        [MESSAGE_QUOTA_END] = try_quota_end,
        [MESSAGE_QUOTA_SAYS] = try_text,
        [MESSAGE_RECORDER_START] = try_recorder_start,
        [MESSAGE_RECORDER_SANDBOX] = try_recorder_sandbox,
        [MESSAGE_RECORDER_RING] = try_recorder_ring,
        [MESSAGE_RECORDER_RING_END] = try_recorder_ring,
        [MESSAGE_RECORDER_EVENT] = try_recorder_event,
        [MESSAGE_RECORDER_END] = try_sandbox,
        [MESSAGE_RECORDER_SUMMARY] = try_summary,
        [MESSAGE_RUN_START] = try_run_start,
        [MESSAGE_RUN_RELOAD] = try_run_start,
        [MESSAGE_RUN_KEPT] = try_text,
        [MESSAGE_RUN_ENV_GET] = try_names,
        [MESSAGE_RUN_ENV] = try_names,
        [MESSAGE_DESCRIPTION] = try_text,
        [MESSAGE_RUN_ROLE] = try_role,
        [MESSAGE_UPGRADE] = try_upgrade,
        [MESSAGE_RUN_READY] = try_run_ready,
        [MESSAGE_RUN_END] = try_status,
        [MESSAGE_RUN_SUMMARY] = try_summary,
        [MESSAGE_GATEWAY_SIGNER] = try_gateway_signer,
        [MESSAGE_GATEWAY_TOKEN] = try_gateway_token,
        [MESSAGE_GATEWAY_VERDICT] = try_gateway_verdict,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct message_head head;
	struct reader body;

	if (message_open(data, size, &head, &body) != 0)
		return 0;
	if (head.type < sizeof(tries) / sizeof(tries[0]) && tries[head.type])
		tries[head.type](data, size, &head, body);
	return 0;
}
