//! The messages of a recording: conversations that begin alike share their beginning.

use std::collections::HashMap;

use serde_json::Value;

/// All messages so far, each after the one it follows.
#[derive(Debug, Default)]
pub(super) struct Messages {
    nodes: Vec<Node>,
    /// Which node a number of the file stands for: equal messages after the same one are the same node.
    numbers: Vec<NodeId>,
    known: HashMap<(Option<NodeId>, String), NodeId>,
}

/// The place of a message in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeId(usize);

#[derive(Debug)]
struct Node {
    follows: Option<NodeId>,
    message: Value,
    /// Its first number in the file.
    number: usize,
}

impl Messages {
    /// Adds the next message of the file.
    pub(super) fn add(&mut self, follows: Option<NodeId>, message: Value) -> NodeId {
        let number = self.numbers.len();
        let id = *self.known.entry((follows, message.to_string())).or_insert_with(|| {
            self.nodes.push(Node { follows, message, number });
            NodeId(self.nodes.len() - 1)
        });
        self.numbers.push(id);
        id
    }

    /// Returns the node of a number of the file.
    pub(super) fn numbered(&self, number: usize) -> Option<NodeId> {
        self.numbers.get(number).copied()
    }

    /// Returns the first number of a node.
    pub(super) fn number(&self, id: NodeId) -> Option<usize> {
        self.nodes.get(id.0).map(|node| node.number)
    }

    /// Returns the nodes of a conversation, as far as it is known.
    pub(super) fn walk(&self, messages: &[Value]) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        for message in messages {
            match self.known.get(&(nodes.last().copied(), message.to_string())) {
                Some(id) => nodes.push(*id),
                None => break,
            }
        }
        nodes
    }

    /// Returns the conversation that ends at a node.
    pub(super) fn conversation(&self, last: Option<NodeId>) -> Vec<(NodeId, &Value)> {
        let node = |id: NodeId| self.nodes.get(id.0);
        let back = std::iter::successors(last, |id| node(*id)?.follows);
        let mut messages: Vec<_> = back.filter_map(|id| Some((id, &node(id)?.message))).collect();
        messages.reverse();
        messages
    }
}
