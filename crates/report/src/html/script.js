// Reads values off charts, switches lines, sorts tables. The page is complete without it.
(function () {
  'use strict';
  var figures = [].slice.call(document.querySelectorAll('figure[data-at]')).map(function (figure) {
    return {
      element: figure,
      group: figure.dataset.group,
      at: figure.dataset.at.split(' ').map(Number),
      labels: figure.dataset.labels.split('|'),
      moment: figure.querySelector('.moment'),
      lines: [].slice.call(figure.querySelectorAll('.legend [data-line]')).map(function (item) {
        return { item: item, values: item.dataset.values.split('|'), output: item.querySelector('output') };
      })
    };
  });

  function nearest(places, wanted) {
    var best = 0;
    for (var i = 1; i < places.length; i++) {
      if (Math.abs(places[i] - wanted) < Math.abs(places[best] - wanted)) best = i;
    }
    return best;
  }

  function show(figure, place) {
    var index = place === null ? -1 : nearest(figure.at, place);
    figure.moment.textContent = index < 0 ? '' : figure.labels[index];
    figure.lines.forEach(function (line) {
      line.output.textContent = index < 0 ? '' : line.values[index] || '—';
    });
    figure.element.querySelectorAll(':scope > svg').forEach(function (svg) {
      var left = +svg.dataset.left, x = left + (+svg.dataset.right - left) * figure.at[index] / 10000;
      var cursor = svg.querySelector('.cursor');
      cursor.style.visibility = index < 0 ? 'hidden' : 'visible';
      if (index >= 0) { cursor.setAttribute('x1', x); cursor.setAttribute('x2', x); }
    });
  }

  function showGroup(group, place) {
    figures.forEach(function (figure) { if (figure.group === group) show(figure, place); });
  }

  figures.forEach(function (figure) {
    figure.element.querySelectorAll(':scope > svg').forEach(function (svg) {
      function point(event) {
        var box = svg.getBoundingClientRect(), left = +svg.dataset.left;
        var x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
        showGroup(figure.group, (x - left) / (+svg.dataset.right - left) * 10000);
      }
      svg.addEventListener('pointermove', point);
      svg.addEventListener('pointerdown', point);
      svg.addEventListener('pointerleave', function () { showGroup(figure.group, null); });
    });
    figure.lines.forEach(function (line) {
      // A list whose children are buttons is none for a screen reader: the name is the button.
      var item = line.item, button = item.querySelector(':scope > span'), on = true;
      button.tabIndex = 0;
      button.setAttribute('role', 'button');
      button.setAttribute('aria-pressed', 'true');
      function toggle() {
        on = !on;
        button.setAttribute('aria-pressed', on);
        figure.element.querySelectorAll(':scope > svg [data-line="' + item.dataset.line + '"]').forEach(function (path) {
          path.style.display = on ? '' : 'none';
        });
      }
      item.addEventListener('click', toggle);
      item.addEventListener('keydown', function (event) {
        if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); toggle(); }
      });
    });
  });

  document.querySelectorAll('table.sortable').forEach(function (table) {
    var heads = [].slice.call(table.tHead.rows[0].cells), body = table.tBodies[0];
    table.classList.add('live');
    function key(row, column) {
      var cell = row.cells[column];
      return cell.dataset.sort === undefined ? cell.textContent : +cell.dataset.sort;
    }
    heads.forEach(function (head, column) {
      function sort() {
        var down = head.getAttribute('aria-sort') !== 'descending';
        heads.forEach(function (other) { other.removeAttribute('aria-sort'); });
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        [].slice.call(body.rows).sort(function (a, b) {
          var x = key(a, column), y = key(b, column);
          return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
        }).forEach(function (row) { body.appendChild(row); });
      }
      head.tabIndex = 0;
      head.addEventListener('click', sort);
      head.addEventListener('keydown', function (event) { if (event.key === 'Enter') sort(); });
    });
  });

  // What is wider than its box takes the focus, so that keys can move it.
  function reach() {
    document.querySelectorAll('.scroll,pre').forEach(function (box) {
      if (!box.querySelector('a,button,input')) box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
    });
  }
  window.addEventListener('resize', reach);
  reach();
})();
