# Sourced by .ci/run: what Debian has to bring, and the two database servers.

packages=(
  build-essential git libmariadb-dev make mariadb-server pkg-config postgresql python3
  python3-dev python3-pip python3-venv ruby-activerecord ruby-mysql2 ruby-pg ruby-sqlite3
)

install_packages() {
  local package missing=()
  for package in "${packages[@]}"; do
    if ! dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null |
      grep --quiet 'ok installed'; then
      missing+=("$package")
    fi
  done
  if ((${#missing[@]} == 0)); then
    echo "All packages are there."
    return
  fi
  install_from_debian "${missing[@]}"
}

install_from_debian() {
  echo "Installing $*"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update --quiet=2
  apt-get install --yes --quiet=2 --no-install-recommends "$@" >/dev/null
}

# wait_for SECONDS COMMAND…: until the command succeeds.
wait_for() {
  local seconds=$1
  shift
  for ((; seconds > 0; seconds--)); do
    if "$@" >/dev/null 2>&1; then
      return 0
    fi
    sleep 1
  done
  return 1
}

is_local() {
  [[ $1 == 127.0.0.1 || $1 == localhost ]]
}

postgres_as_configured() {
  PGCONNECT_TIMEOUT=5 psql --no-password --host "$PGHOST" --port "$PGPORT" --username "$PGUSER" \
    --dbname postgres --command 'SELECT 1'
}

postgres_over_socket() {
  runuser --user postgres -- env --unset=PGHOST --unset=PGUSER --unset=PGPASSWORD \
    psql --no-password --port "$PGPORT" --dbname postgres "$@"
}

start_postgresql() {
  export PGHOST=${PGHOST:-127.0.0.1} PGPORT=${PGPORT:-5432} PGUSER=${PGUSER:-postgres}
  if wait_for 2 postgres_as_configured; then
    return
  fi
  if ! is_local "$PGHOST"; then
    wait_for 60 postgres_as_configured && return
    echo "PostgreSQL at $PGHOST:$PGPORT does not let $PGUSER in." >&2
    return 1
  fi
  local version
  version=$(find /etc/postgresql -mindepth 1 -maxdepth 1 -printf '%f\n' | sort --version-sort | tail -n 1)
  # A cluster that was made while another server ran has a port of its own.
  PGPORT=$(pg_conftool --short "$version" main show port)
  pg_ctlcluster --skip-systemctl-redirect "$version" main start || true
  if ! wait_for 60 postgres_over_socket --command 'SELECT 1'; then
    echo "PostgreSQL does not start." >&2
    return 1
  fi
  if ! postgres_as_configured >/dev/null 2>&1; then
    # A new cluster trusts nobody over TCP: a user of our own, with a password.
    export PGUSER=solid_runs_ci PGPASSWORD=solid_runs_ci
    postgres_over_socket --quiet --set ON_ERROR_STOP=1 <<SQL
DROP ROLE IF EXISTS $PGUSER;
CREATE ROLE $PGUSER LOGIN SUPERUSER PASSWORD '$PGPASSWORD';
SQL
    postgres_as_configured >/dev/null
  fi
}

mariadb_as_configured() {
  mariadb --protocol=tcp --connect-timeout=5 --host="$MYSQL_HOST" --port="$MYSQL_PORT" \
    --user="$MYSQL_USER" --password="${MYSQL_PASSWORD:-}" --execute='SELECT 1'
}

mariadb_over_socket() {
  env --unset=MYSQL_HOST mariadb --protocol=socket --user=root "$@"
}

start_mariadb() {
  export MYSQL_HOST=${MYSQL_HOST:-127.0.0.1} MYSQL_PORT=${MYSQL_PORT:-3306}
  export MYSQL_USER=${MYSQL_USER:-root} MYSQL_PASSWORD=${MYSQL_PASSWORD:-}
  if wait_for 2 mariadb_as_configured; then
    return
  fi
  if ! is_local "$MYSQL_HOST"; then
    wait_for 60 mariadb_as_configured && return
    echo "MariaDB at $MYSQL_HOST:$MYSQL_PORT does not let $MYSQL_USER in." >&2
    return 1
  fi
  install --directory --owner=mysql --group=mysql /run/mysqld
  start-stop-daemon --start --oknodo --background --exec /usr/sbin/mariadbd -- --user=mysql
  if ! wait_for 60 mariadb_over_socket --execute='SELECT 1'; then
    echo "MariaDB does not start." >&2
    return 1
  fi
  if ! mariadb_as_configured >/dev/null 2>&1; then
    # A new server lets root in through the socket only: a user of our own, with a password.
    export MYSQL_USER=solid_runs_ci MYSQL_PASSWORD=solid_runs_ci
    local host
    for host in localhost 127.0.0.1; do
      mariadb_over_socket <<SQL
CREATE OR REPLACE USER '$MYSQL_USER'@'$host' IDENTIFIED BY '$MYSQL_PASSWORD';
GRANT ALL PRIVILEGES ON *.* TO '$MYSQL_USER'@'$host' WITH GRANT OPTION;
SQL
    done
    mariadb_as_configured >/dev/null
  fi
}

# find_python 3.13: the first that runs and really is that version.
find_python() {
  local candidate folder=${PYENV_ROOT:-$HOME/.pyenv}
  local check="import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')"
  while read -r candidate; do
    if "$candidate" -c "$check" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done < <(
    echo "python$1"
    find "$folder/versions" -mindepth 1 -maxdepth 1 -name "$1*" -printf '%p/bin/python\n' \
      2>/dev/null | sort --version-sort --reverse
    echo "/usr/bin/python$1"
  )
  echo "No Python $1 was found, on the PATH or under $folder/versions." >&2
  return 1
}

# major_version 20.20.2-1: its first number; 0 for what has none.
major_version() {
  local found
  found=$(sed --regexp-extended 's/^v?([0-9]+:)?([0-9]+)\..*/\2/' <<<"$1")
  [[ $found =~ ^[0-9]+$ ]] && echo "$found" || echo 0
}

# need_node 20: is there with npm, or comes from Debian where that has one so new.
need_node() {
  local oldest=$1 offered
  if (($(major_version "$(node --version 2>/dev/null)") < oldest)); then
    offered=$(apt-cache policy nodejs 2>/dev/null | sed --quiet 's/^ *Candidate: //p')
    if (($(major_version "$offered") < oldest)); then
      echo "Node $oldest or later is needed on the PATH, with npm; Debian here offers ${offered:-none}." >&2
      return 1
    fi
    install_from_debian nodejs
  fi
  if ! command -v npm >/dev/null; then
    install_from_debian npm
  fi
}
