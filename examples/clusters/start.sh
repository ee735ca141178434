#!/bin/bash
# Starts one process of a job in each pod of an indexed job, without ssh: start.sh PROGRAM ARGUMENTS...
# The environment has HOSTS, the pods separated by commas, PORT, and JOB_COMPLETION_INDEX, the number of this pod.
set -u
first=${HOSTS%%,*}

# The connection to the launcher in the first pod. It is retried, as the launcher may start later.
connect() {
  for _ in $(seq 60); do
    hydra_pmi_proxy --control-port "$first:$PORT" --rmk user --launcher manual --demux poll --pgid 0 --retries 10 \
      --usize -2 --pmi-port 0 --gpus-per-proc -2 --proxy-id "$JOB_COMPLETION_INDEX" && return
    sleep 1
  done
  return 1
}

if [ "$JOB_COMPLETION_INDEX" -gt 0 ]; then
  connect
  exit
fi
connect &
count=$(tr ',' '\n' <<< "$HOSTS" | wc -l)
MPIEXEC_PORT_RANGE="$PORT:$PORT" exec mpiexec.hydra -launcher manual -hosts "$HOSTS" -n "$count" "$@" < /dev/null
