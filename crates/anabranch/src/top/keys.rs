//! What keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    End,
    Next,
    Previous,
    Zoom,
    Freeze,
    Help,
}

/// The wish behind a key; `None` if it has none.
pub(super) fn wish(key: KeyEvent) -> Option<Wish> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if is_control => Some(Wish::End),
        KeyCode::Char('q') | KeyCode::Esc => Some(Wish::End),
        KeyCode::Down | KeyCode::Char('j') => Some(Wish::Next),
        KeyCode::Up | KeyCode::Char('k') => Some(Wish::Previous),
        KeyCode::Enter => Some(Wish::Zoom),
        KeyCode::Char('f') => Some(Wish::Freeze),
        KeyCode::Char('?' | 'h') => Some(Wish::Help),
        _ => None,
    }
}
