/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request: what a container runtime asks for: environment variables and a network configuration on
 * standard input (CNI specification 1.1.0, section 2). The runtime is trusted, but pods choose
 * parts of it: names, annotations. So every length is bounded, and an unknown member is refused,
 * because "polcy" must not start a pod without its policy.
 */
#ifndef VETHGUARD_SRC_CNI_REQUEST_H
#define VETHGUARD_SRC_CNI_REQUEST_H

#include <jansson.h>
#include <stdbool.h>

#include "vethguard/adapter/policy_name.h"
#include "vethguard/base/slice.h"
#include "cni/fault.h"

#define CNI_STDIN_MAX (1u << 20) /* bytes */
#define CNI_NAME_MAX 255         /* a network's name, a container's id: they become labels */
#define CNI_PATH_MAX 1023        /* CNI_NETNS, socket, policyDirectory */
#define CNI_ARGUMENTS_MAX 4096   /* CNI_ARGS */
#define CNI_NAMESPACE_MAX 63     /* K8S_POD_NAMESPACE: a DNS label */
#define CNI_POD_MAX 253          /* K8S_POD_NAME: a DNS name */
#define CNI_UID_MAX 63
#define CNI_LABELS_MAX 24        /* of the network configuration; the daemon takes 32 */
#define CNI_CHOICES_MAX 64       /* podMayChoose */
#define CNI_ATTACHMENTS_MAX 8192 /* cni.dev/valid-attachments */
#define CNI_VERSION_NEWEST "1.1.0"
#define CNI_ANNOTATIONS "io.kubernetes.cri.pod-annotations"
#define CNI_ANNOTATION_POLICY "vethguard.org/policy"

enum cni_command {
	CNI_ADD,
	CNI_DEL,
	CNI_CHECK,
	CNI_STATUS,
	CNI_GC,
	CNI_VERSION,
	CNI_COMMAND_COUNT
};

/* The variables CNI_COMMAND, CNI_CONTAINERID, CNI_NETNS, CNI_IFNAME, CNI_ARGS; NULL: not set. */
struct cni_environment {
	const char *command, *container, *netns, *interface, *arguments;
};

/* Of CNI_ARGS: who the container is in Kubernetes, or "". */
struct cni_pod {
	char namespace[CNI_NAMESPACE_MAX + 1], name[CNI_POD_MAX + 1], uid[CNI_UID_MAX + 1];
};

/* Texts and objects are borrowed from environment and config, texts that are not there are "". */
struct cni_request {
	enum cni_command command;
	const char *version; /* that the answer is to have */
	const char *container, *netns, *interface;
	struct cni_pod pod;
	const char *network, *socket, *policy_directory;
	const char *policy;                            /* chosen, by name */
	const json_t *labels, *previous, *attachments; /* NULL: not there */
	json_t *config;                                /* owned */
};

/* Reads and judges all that the command needs, and nothing else: a configuration that has become
 * wrong does not keep DEL from detaching. request->version is set in any case. False: fault says
 * why. Free the request in any case. */
bool cni_request_read(struct cni_request *request, const struct cni_environment *environment,
        struct slice input, struct cni_fault *fault);
void cni_request_free(struct cni_request *request);

/* The versions that the answer to VERSION names, ending with NULL. */
extern const char *const cni_versions[];

/* arguments.c: reads CNI_ARGS, "KEY=VALUE;KEY=VALUE". */
bool cni_arguments_read(struct cni_pod *pod, const char *text, struct cni_fault *fault);
/* config.c: reads the members of the network configuration that the command needs. */
bool cni_config_read(struct cni_request *request, struct cni_fault *fault);
/* Up to max letters, digits, '.', '_' and '-', beginning with a letter or digit. */
bool cni_is_name(const char *text, size_t max);

#endif
