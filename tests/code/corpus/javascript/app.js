(function () {
  const list = document.querySelector('#todo-list');
  const form = document.querySelector('form');
  let todos = JSON.parse(localStorage.getItem('todos') || '[]');

  function render() {
    list.innerHTML = todos
      .map((todo, index) => `
        <li class="${todo.done ? 'done' : ''}" data-index="${index}">
          <span>${escape(todo.text)}</span>
        </li>`)
      .join('');
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const text = form.elements.text.value.trim();
    if (!text) {
      return;
    }
    todos.push({ text, done: false });
    form.reset();
    store();
  });

  list.addEventListener('click', ({ target }) => {
    const item = target.closest('li');
    switch (item && target.tagName) {
      case 'SPAN':
        todos[item.dataset.index].done = !todos[item.dataset.index].done;
        break;
      case 'BUTTON':
        todos = todos.filter((_, index) => index !== Number(item.dataset.index));
        break;
      default:
        return;
    }
    store();
  });

  function store() {
    localStorage.setItem('todos', JSON.stringify(todos));
    render();
  }

  render();
})();
