// Qt 6: a QOpenGLWidget whose frames QPainter draws. Half of them are drawn below another parent, in another context.
#include <QApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QOpenGLContext>
#include <QOpenGLWidget>
#include <QPainter>
#include <QTimer>

#include "toolkits/products.hpp"

namespace {

// Qt's function is a member of the context.
void (*get_proc_address(const char* name))() {
  return QOpenGLContext::currentContext()->getProcAddress(name);
}

class View : public QOpenGLWidget {
 public:
  ~View() override { end(); }
  int frames = 0;

 private:
  // Qt calls this for the first context, and for each one that the widget gets later.
  void initializeGL() override {
    connect(context(), &QOpenGLContext::aboutToBeDestroyed, this, &View::end);
    products_.emplace(get_proc_address);
  }

  void end() {
    if (!products_) return;
    disconnect(context(), nullptr, this, nullptr);
    makeCurrent();
    products_.reset();
    doneCurrent();
  }

  void paintGL() override {
    QPainter painter(this);
    painter.fillRect(rect(), Qt::darkBlue);
    painter.setPen(Qt::white);
    painter.drawText(20, 20, QString::number(frames));
    products_->multiply();  // also between two calls of QPainter, whose state it leaves as it is
    painter.setBrush(Qt::yellow);
    painter.drawEllipse(40, 30, 100, 60);
    painter.beginNativePainting();
    products_->multiply();
    painter.endNativePainting();
    painter.setPen(Qt::black);
    painter.drawText(80, 65, "Qt");
    ++frames;
  }

  std::optional<toolkits::Products> products_;
};

}  // namespace

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  QWidget first, second;
  auto* const view = new View;
  view->setParent(&first);
  first.setGeometry(0, 0, 220, 140);
  second.setGeometry(240, 0, 220, 140);
  view->setGeometry(10, 10, 200, 120);
  first.show();
  second.show();
  QTimer timer;
  QObject::connect(&timer, &QTimer::timeout, [&] {
    if (view->frames == toolkits::last_frame) {
      toolkits::take_picture();
      QApplication::quit();
    } else if (view->frames == toolkits::last_frame / 2 && view->parent() == &first) {
      view->setParent(&second);
      view->show();
    } else {
      view->update();
    }
  });
  timer.start(200);
  QApplication::exec();
  delete view;
  return toolkits::end();
}
