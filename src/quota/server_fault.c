/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/server_fault.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *code, *meaning;
} faults[] = {
        {"WRONGPASS", "it refuses user or password (WRONGPASS): look at quota.user and "
                      "quota.password"},
        {"NOAUTH", "it wants a password (NOAUTH): add quota.password"},
        {"NOPERM", "its user may not do this (NOPERM): permit +eval +get +set +time +hmget +hset "
                   "+hincrby +pexpire on the keys vethguard:quota:*"},
        {"MOVED", "it is a node of a cluster that has other keys (MOVED): name a server that has "
                  "all keys"},
        {"ASK", "it is a node of a cluster that moves its keys (ASK): name a server that has all "
                "keys"},
        {"CLUSTERDOWN", "its cluster is down (CLUSTERDOWN)"},
        {"CROSSSLOT", "it is a node of a cluster (CROSSSLOT): name a server that has all keys"},
        {"LOADING", "it loads its data (LOADING)"},
        {"READONLY", "it is a replica (READONLY): name the primary"},
        {"MASTERDOWN", "it is a replica without its primary (MASTERDOWN)"},
        {"NOREPLICAS", "it has too few replicas (NOREPLICAS)"},
        {"MISCONF", "it cannot write its data to its disk (MISCONF)"},
        {"OOM", "it has no memory left (OOM)"},
        {"BUSY", "another script keeps it busy (BUSY)"},
        {"WRONGTYPE", "a key vethguard:quota:* has a value of another type (WRONGTYPE): delete "
                      "that key"},
};

const char *server_fault_text(const char *error, char out[SERVER_WHY_MAX])
{
	size_t n = strcspn(error, " ");

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (strlen(faults[i].code) == n && memcmp(faults[i].code, error, n) == 0)
			return faults[i].meaning;
	/* "ERR ..." has its reason in the words behind it. Two of them are ours to explain. */
	if (strstr(error, "without any password configured"))
		return "it has no password, and quota.password gives one: remove it";
	if (strstr(error, "DB index"))
		return "it has no such database: look at the number behind quota.server";
	snprintf(out, SERVER_WHY_MAX, "it answers with an error that is not known here");
	return out;
}
