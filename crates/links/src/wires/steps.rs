//! Which conditions hold in each direction, and when the next step is due: a state machine, and the thread that carries it out.

use std::sync::mpsc::{Receiver, RecvTimeoutError};

use pubmark_model::link::{Conditions, Link, Step};
use pubmark_protocol::clock;

use crate::Direction;
use crate::error::LinkError;
use crate::star::Command;

/// Conditions of one direction.
#[derive(Clone, Debug)]
struct Course {
    steps: Vec<Step>,
    /// The first step that is not executed yet.
    next: usize,
    current: Conditions,
}

/// A change to execute: group, direction, new conditions.
pub type Change = (usize, Direction, Conditions);

/// The courses of all links.
#[derive(Clone, Debug)]
pub struct Courses {
    /// By group: up, down.
    links: Vec<[Course; 2]>,
    cut: Vec<bool>,
    /// Since when steps count; `None` before.
    origin_ns: Option<u64>,
}

const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

impl Courses {
    /// Of these links.
    pub fn new(links: &[Link]) -> Courses {
        let course = |steps: &Vec<Step>| Course {
            steps: steps.clone(),
            next: 1,
            current: steps.first().map(|step| step.conditions).unwrap_or_default(),
        };
        Courses {
            links: links.iter().map(|link| [course(&link.up), course(&link.down)]).collect(),
            cut: vec![false; links.len()],
            origin_ns: None,
        }
    }

    /// What holds in all directions.
    pub fn all(&self) -> Vec<Change> {
        (0..self.links.len()).flat_map(|group| self.of(group)).collect()
    }

    /// What is to be changed for a command.
    pub fn command(&mut self, command: Command) -> Vec<Change> {
        match command {
            Command::Start(origin_ns) => {
                self.origin_ns = Some(origin_ns);
                Vec::new()
            }
            Command::Set(group, direction, conditions) => {
                self.links[group][direction as usize].current = conditions;
                vec![self.change(group, direction)]
            }
            Command::Cut(group, cut) => {
                self.cut[group] = cut;
                self.of(group).to_vec()
            }
        }
    }

    /// When the next step is due; `None` if there is none.
    pub fn due_ns(&self) -> Option<u64> {
        let origin_ns = self.origin_ns?;
        let steps = self.links.iter().flatten().filter_map(|course| course.steps.get(course.next));
        steps.map(|step| origin_ns.saturating_add(step.at_ns)).min()
    }

    /// What is to be changed at this time: the last step that is due of each direction.
    pub fn advance(&mut self, now_ns: u64) -> Vec<Change> {
        let Some(origin_ns) = self.origin_ns else { return Vec::new() };
        let mut changed = Vec::new();
        for (group, link) in self.links.iter_mut().enumerate() {
            for (direction, course) in DIRECTIONS.into_iter().zip(link) {
                let before = course.next;
                while let Some(step) = course.steps.get(course.next).filter(|step| origin_ns + step.at_ns <= now_ns) {
                    course.current = step.conditions;
                    course.next += 1;
                }
                if course.next > before {
                    changed.push((group, direction));
                }
            }
        }
        changed.into_iter().map(|(group, direction)| self.change(group, direction)).collect()
    }

    fn of(&self, group: usize) -> [Change; 2] {
        DIRECTIONS.map(|direction| self.change(group, direction))
    }

    fn change(&self, group: usize, direction: Direction) -> Change {
        let current = self.links[group][direction as usize].current;
        (group, direction, Conditions { down: current.down || self.cut[group], ..current })
    }
}

/// Executes commands and steps with `apply` until all senders of commands are gone.
pub fn run(
    mut courses: Courses,
    commands: &Receiver<Command>,
    mut apply: impl FnMut(Change) -> Result<(), LinkError>,
) -> Result<(), LinkError> {
    loop {
        let command = match courses.due_ns() {
            None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            // A wait that ends before the step is due changes nothing, and is followed by another.
            Some(due_ns) => commands.recv_timeout(clock::wait_until(due_ns)),
        };
        let changes = match command {
            Ok(command) => {
                // A command that is received may be later than a step that is due already.
                let mut changes = courses.advance(clock::monotonic_ns());
                changes.extend(courses.command(command));
                changes
            }
            Err(RecvTimeoutError::Timeout) => courses.advance(clock::monotonic_ns()),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        changes.into_iter().try_for_each(&mut apply)?;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn duplicating(duplicate: f64) -> Conditions {
        Conditions { duplicate, ..Conditions::default() }
    }

    fn courses() -> Courses {
        let mut link = Link::symmetric("stepped", duplicating(0.1));
        link.up.extend([(5, 0.2), (9, 0.3)].map(|(at_ns, share)| Step { at_ns, conditions: duplicating(share) }));
        Courses::new(&[link])
    }

    #[test]
    fn steps_count_from_the_start_and_none_is_left_out() {
        let mut courses = courses();
        assert_eq!(courses.all(), [(0, Direction::Up, duplicating(0.1)), (0, Direction::Down, duplicating(0.1))]);
        assert_eq!((courses.due_ns(), courses.advance(1_000_000)), (None, vec![]));
        assert_eq!(courses.command(Command::Start(1_000)), []);
        assert_eq!(courses.due_ns(), Some(1_005));
        assert_eq!(courses.advance(1_004), []);
        assert_eq!(courses.clone().advance(1_005), [(0, Direction::Up, duplicating(0.2))]);
        assert_eq!(courses.clone().advance(2_000), [(0, Direction::Up, duplicating(0.3))], "late: the last one holds");
        courses.advance(1_005);
        assert_eq!(courses.due_ns(), Some(1_009));
        courses.advance(1_009);
        assert_eq!(courses.due_ns(), None);
    }

    #[test]
    fn a_cut_direction_is_down_and_then_continues_its_steps() {
        let mut courses = courses();
        courses.command(Command::Start(0));
        let down = |share| Conditions { down: true, ..duplicating(share) };
        assert_eq!(
            courses.command(Command::Cut(0, true)),
            [(0, Direction::Up, down(0.1)), (0, Direction::Down, down(0.1))]
        );
        assert_eq!(courses.advance(5), [(0, Direction::Up, down(0.2))], "a step does not let it back");
        let back = courses.command(Command::Cut(0, false));
        assert_eq!(back, [(0, Direction::Up, duplicating(0.2)), (0, Direction::Down, duplicating(0.1))]);
        assert_eq!(
            courses.command(Command::Set(0, Direction::Down, duplicating(0.9))),
            [(0, Direction::Down, duplicating(0.9))]
        );
    }

    #[test]
    fn steps_that_are_due_come_before_a_command() {
        let (sender, receiver) = std::sync::mpsc::channel();
        sender.send(Command::Start(0)).unwrap();
        sender.send(Command::Set(0, Direction::Up, duplicating(0.4))).unwrap();
        drop(sender);
        let mut changes = Vec::new();
        let apply = |change| {
            changes.push(change);
            Ok(())
        };
        run(courses(), &receiver, apply).unwrap();
        assert_eq!(changes, [(0, Direction::Up, duplicating(0.3)), (0, Direction::Up, duplicating(0.4))]);
    }

    #[test]
    fn the_thread_carries_out_commands_and_steps_and_ends_with_the_last_sender() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (changes_to, changes) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            run(courses(), &receiver, |change| {
                changes_to.send(change).unwrap();
                Ok(())
            })
        });
        sender.send(Command::Start(clock::monotonic_ns())).unwrap();
        let patience = Duration::from_secs(10);
        while changes.recv_timeout(patience).unwrap() != (0, Direction::Up, duplicating(0.3)) {}
        sender.send(Command::Set(0, Direction::Up, duplicating(0.4))).unwrap();
        assert_eq!(changes.recv_timeout(patience).unwrap(), (0, Direction::Up, duplicating(0.4)));
        drop(sender);
        thread.join().unwrap().unwrap();
    }
}
