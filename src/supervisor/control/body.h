/* SPDX-License-Identifier: Apache-2.0 */
/* control_body: reads and checks the members of a request's JSON. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONTROL_BODY_H
#define VETHGUARD_SRC_SUPERVISOR_CONTROL_BODY_H

#include "supervisor/attach/attachments.h"

#define CONTROL_FAULT_MAX 512
#define CONTROL_ID_OF_CALLER UINT32_MAX /* owner of a socket: none was named */

struct json_t;

/* An attach request with the memory of its pairs; strings borrow from the JSON. */
struct control_attach {
	struct attach_request request;
	struct attach_pair labels[ATTACH_LABELS_MAX], vars[ATTACH_VARS_MAX];
	bool files; /* write resolv.conf and the CA into the sandbox's file system */
};

/* Each returns true, or false with one sentence in fault that names the member, what is wrong and
 * what would be right. body may be NULL: none was sent. */
bool control_body_attach(const struct json_t *body, struct control_attach *out, char *fault);
/* To prepare a namespace; to claim one. */
bool control_body_prepare(const struct json_t *body, struct control_attach *out, char *fault);
bool control_body_claim(const struct json_t *body, struct control_attach *out, char *fault);
/* Read the body that makes a session (without a time it lasts CONTROL_SESSION_TTL_S), the body that
 * lets one last ttl_s, and the body with the hash of its certificate. */
#define CONTROL_SESSION_TTL_S 86400
bool control_body_session(const struct json_t *body, struct control_attach *out, char *fault);
bool control_body_extend(const struct json_t *body, uint32_t *ttl_s, char *fault);
bool control_body_certify(
        const struct json_t *body, uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], char *fault);
/* The signed tokens that are to be refused. */
bool control_body_revoke_token(
        const struct json_t *body, const char **signer, const char **id, char *fault);
/* *policy or *reason is NULL if the member is missing. */
bool control_body_reload(const struct json_t *body, const char **policy, char *fault);
/* The process with which a sandbox is to end; *start_time 0: not compared. */
bool control_body_follow(const struct json_t *body, pid_t *pid, uint64_t *start_time, char *fault);
bool control_body_approve(const json_t *body, struct attach_decision *out, char *fault);
bool control_body_pause(const struct json_t *body, const char **reason, char *fault);
/* Reads the name of a credential. */
bool control_body_credential(const struct json_t *body, const char **credential, char *fault);
/* Members of the calls on the CA. Strings borrow from body and are "" if missing. */
struct control_ca {
	const char *name, *certificate, *root;
	uint64_t overlap_s; /* 0: missing */
};
bool control_body_ca_csr(const struct json_t *body, struct control_ca *out, char *fault);
bool control_body_ca_install(const struct json_t *body, struct control_ca *out, char *fault);
bool control_body_ca_rotate(const struct json_t *body, struct control_ca *out, char *fault);
bool control_body_empty(const struct json_t *body, char *fault);

#endif
