//! Shows that the server kit and the manager's client keep VirtRigaud's contract with one another:
//! who gets in, what they can do, and that rotations and shutdowns lose no call.

#[cfg(test)]
mod admin;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod health;
#[cfg(test)]
mod insecure;
#[cfg(test)]
mod machines;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod posture;
#[cfg(test)]
mod rotation;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod support;
#[cfg(test)]
mod wire;
