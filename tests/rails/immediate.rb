# Active Record on SQLite as Rails 8 has it: a transaction takes the write lock when it begins.
# Older ones read first and then ask for the lock, which SQLite refuses at once, without waiting,
# when somebody else is writing. Load it with `ruby -r` before legacy_tables.rb.
require "sqlite3"

SQLite3::Database.prepend(Module.new { def transaction(mode = :immediate, &block) = super })
