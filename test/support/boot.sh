#!/bin/sh
# A second machine made of this one: systemd as the first process of namespaces of its own, with no network but loopback.
# Its file system is the root of this machine; changes stay in memory. Its process id is printed.
# Everything is gone once standard input ends, also where the caller was killed.
#   boot.sh CGROUP ROOT FILE
# CGROUP: a new folder in a cgroup2 tree. ROOT: an empty folder. FILE: stands in /run of the machine.
set -eu
cgroup=$1 root=$2 file=$3

if [ "${4-}" != inside ]; then
  mkdir "$cgroup"
  sh -ec 'echo $$ >"$1/cgroup.procs"; exec unshare --pid --mount --uts --ipc --net --cgroup --fork --kill-child \
    sh "$0" "$@" inside' "$0" "$@" </dev/null &
  machine=$!
  while read -r _; do :; done
  # A caller that was killed reads nothing: a message would end this shell.
  exec >/dev/null 2>&1
  kill -KILL "$machine" 2>/dev/null || true
  wait "$machine" || true
  # The kernel ends the processes of the machine in its own time.
  until find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null; do sleep 0.1; done
  rmdir "$root"
  exit
fi

mount -t tmpfs -o mode=755 machine "$root"
mkdir "$root/changes" "$root/work" "$root/machine"
mount -t overlay -o "lowerdir=/,upperdir=$root/changes,workdir=$root/work" machine "$root/machine"
cd "$root/machine"
# Empty: what this machine enables is not started.
mount -t tmpfs -o mode=755 machine etc/systemd/system
mount -t tmpfs -o mode=755 machine run
mount -t tmpfs -o mode=1777 machine tmp
mkdir -p run/systemd/system run/journal var/log/journal
mount --bind run/journal var/log/journal
touch "run/${file##*/}"
mount --bind "$file" "run/${file##*/}"

# Kernel settings are read-only, as in a container: systemd leaves them alone.
mount -t tmpfs -o mode=755 machine dev
mkdir dev/pts dev/shm
for device in null zero full random urandom tty; do
  touch dev/$device
  mount --bind /dev/$device dev/$device
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
# The process id in the outer machine, whose /proc is still mounted here.
read -r pid _ </proc/self/stat
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
ip link set lo up

ln -s /dev/null run/systemd/system/timers.target
printf '[Unit]\nRequires=basic.target\nAfter=basic.target\n' >run/systemd/system/trial.target

mkdir run/outside
pivot_root . run/outside
umount -l /run/outside
rmdir /run/outside
# The credentials of a service are mounted by a child of systemd. Others see them through a shared tree only.
mount --make-rshared /
echo "$pid"
exec env -i container=trial PATH=/usr/sbin:/usr/bin:/sbin:/bin setpriv --bounding-set -sys_module,-sys_time,-sys_rawio \
  /usr/lib/systemd/systemd --unit=trial.target >/dev/null 2>&1
