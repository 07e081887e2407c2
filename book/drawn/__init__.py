"""Pictures of the ideas: each is drawn, when the book is rendered, from what the library's own objects do."""
