/* SPDX-License-Identifier: Apache-2.0 */
/* fault: why an operation failed, as the CNI specification (1.1.0, "Error") wants it told: a
 * number, a sentence, and what to do. */
#ifndef VETHGUARD_SRC_CNI_FAULT_H
#define VETHGUARD_SRC_CNI_FAULT_H

#include <jansson.h>
#include <stdbool.h>

#include "vethguard/adapter/control_client.h"

enum cni_code {
	CNI_INCOMPATIBLE_VERSION = 1,
	CNI_UNSUPPORTED_FIELD = 2,
	CNI_UNKNOWN_CONTAINER =
	        3, /* never used: it would tell the runtime that DEL is not needed */
	CNI_INVALID_ENVIRONMENT = 4,
	CNI_IO_FAILURE = 5,
	CNI_DECODING_FAILURE = 6,
	CNI_INVALID_CONFIG = 7,
	CNI_TRY_AGAIN = 11,
	CNI_NOT_AVAILABLE = 50,
	CNI_NOT_AVAILABLE_LIMITED = 51, /* containers that run already are cut off too */
	CNI_REFUSED = 100,              /* the daemon says no */
	CNI_CANNOT_GUARD = 101,         /* the container's network cannot be guarded completely */
	CNI_POLICY_REFUSED = 102,       /* the pod asks for a policy that it may not choose */
	CNI_NOT_GUARDED = 103           /* CHECK: something differs from what ADD made */
};

#define CNI_MESSAGE_MAX 256
struct cni_fault {
	enum cni_code code;
	char message[CNI_MESSAGE_MAX];
	char details[CONTROL_CLIENT_TEXT_MAX];
};

/* Fills fault; details may be empty. Control characters are escaped. Always returns false. */
bool cni_fail(struct cni_fault *fault, enum cni_code code, const char *message, const char *details,
        ...) __attribute__((format(printf, 4, 5)));
/* Says why a call of the daemon's control API failed (control_answer_fault()): with refused if the
 * daemon has answered, with absent if it could not be asked or wants to be asked again. Always
 * returns false. */
bool cni_fail_call(struct cni_fault *fault, enum cni_code refused, enum cni_code absent,
        const char *message, const struct control_answer *answer, int rc, const char *socket_path);
/* The JSON object that goes to standard output; the caller owns it. NULL: no memory. */
json_t *cni_fault_json(const struct cni_fault *fault, const char *version);

#endif
