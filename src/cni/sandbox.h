/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox: a container's sandbox at the daemon. vethguard-cni keeps no list of them: the sandbox's
 * name ends with a digest of the key that the specification gives to a plugin's state (network,
 * container, interface), and its labels have the three themselves.
 */
#ifndef VETHGUARD_SRC_CNI_SANDBOX_H
#define VETHGUARD_SRC_CNI_SANDBOX_H

#include <net/if.h>

#include "cni/request.h"

#define CNI_SANDBOX_NAME_MAX 64 /* the daemon's bound (MESSAGE_NAME_MAX) */

#define CNI_LABEL_NETWORK "cni.network"
#define CNI_LABEL_CONTAINER "cni.container"
#define CNI_LABEL_INTERFACE "cni.interface"

/* "NAMESPACE.POD-DIGEST", cut where it is too long; without a pod "CONTAINER-DIGEST". */
void cni_sandbox_name(const struct cni_request *request, char out[CNI_SANDBOX_NAME_MAX + 1]);
/* The labels of the sandbox; the caller owns them. NULL: no memory. */
json_t *cni_sandbox_labels(const struct cni_request *request);
/* Finds the container's sandbox by the digest at the end of its name. On true *out is the sandbox
 * as the daemon shows it, which the caller owns, or NULL: the daemon has none. False: the daemon
 * does not answer; code is CNI_TRY_AGAIN. */
bool cni_sandbox_find(const struct cni_request *request, json_t **out, struct cni_fault *fault);
/* Ends the guard of this sandbox. An interface of the host is taken down first, because it would be
 * open from then on: its container may still run, and whatever made the interface removes it next.
 * True also if the sandbox is gone. */
bool cni_sandbox_detach(
        const struct cni_request *request, const json_t *sandbox, struct cni_fault *fault);
/* The interface of the host that the sandbox is behind, or "" (borrowed). */
const char *cni_sandbox_interface(const json_t *sandbox);

#endif
