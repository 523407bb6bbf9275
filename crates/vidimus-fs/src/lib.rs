//! Files that survive a crash: durable writes, modes, create-new, atomic folders, locks.
