/* SPDX-License-Identifier: Apache-2.0 */
/* operations: the commands of the CNI specification (1.1.0, section 2). Each returns true, with the
 * answer for standard output in *result (the caller owns it; NULL: none), or false with fault. */
#ifndef VETHGUARD_SRC_CNI_OPERATIONS_H
#define VETHGUARD_SRC_CNI_OPERATIONS_H

#include "cni/request.h"

/* Guards the container, or fails and leaves it without a way out. */
bool cni_add(const struct cni_request *request, json_t **result, struct cni_fault *fault);
/* Ends the guard. True also if there is none. */
bool cni_del(const struct cni_request *request, json_t **result, struct cni_fault *fault);
/* Compares what is there with what ADD has made. */
bool cni_check(const struct cni_request *request, json_t **result, struct cni_fault *fault);
/* Whether ADD would work. */
bool cni_status(const struct cni_request *request, json_t **result, struct cni_fault *fault);
/* Ends the guard of every sandbox of the network whose container is not in
 * cni.dev/valid-attachments. */
bool cni_gc(const struct cni_request *request, json_t **result, struct cni_fault *fault);
/* Which versions there are. */
bool cni_version(const struct cni_request *request, json_t **result, struct cni_fault *fault);

#endif
